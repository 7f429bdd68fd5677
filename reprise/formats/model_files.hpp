// The weights of a model in a folder, as one set of named tensors, whether one file holds them
// (model.safetensors) or several do (model.safetensors.index.json and the shards it names).
//
// Called by workloads that load a model. Opening checks every header and reads no data. Reading is
// safe from any thread; moving is not, while others read.
#pragma once

#include <filesystem>
#include <map>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/formats/safetensors.hpp"

namespace reprise {

// Move-only. Tensors keep their addresses, and their bytes, when the model moves.
class model_files {
 public:
  // Throws usage_error, one line, when the folder or a file is missing or broken; when the folder
  // has an index that does not name the model.safetensors beside it (which model is meant?); when a
  // shard lacks a tensor that the index says it has; when two shards have one tensor. A tensor that
  // is in a shard and not in the index is part of the model.
  explicit model_files(const std::filesystem::path& folder);

  // Null when no file has a tensor of that name.
  const stored_tensor* find(std::string_view name) const noexcept;

  // Throws usage_error when no file has a tensor of that name.
  const stored_tensor& at(std::string_view name) const;

  // Every tensor, in the order of names: a range of const stored_tensor&.
  auto tensors() const {
    return std::views::transform(
        by_name_, [](const auto& named) -> const stored_tensor& { return *named.second; });
  }

  // The files that are open: one, or the shards in the order of their names.
  const std::vector<safetensors_file>& files() const noexcept { return files_; }
  const std::filesystem::path& folder() const noexcept { return folder_; }

 private:
  void open_shards(const std::filesystem::path& index_path, bool single_file_beside);
  void add_tensors_of(const safetensors_file& file);

  std::filesystem::path folder_;
  std::vector<safetensors_file> files_;
  std::map<std::string_view, const stored_tensor*> by_name_;  // into files_
};

}  // namespace reprise
