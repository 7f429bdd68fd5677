#include "reprise/formats/model_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>

#include "reprise/formats/mapped_file.hpp"
#include "reprise/formats/printable.hpp"
#include "reprise/formats/refusal.hpp"
#include "reprise/formats/shard_index.hpp"

namespace reprise {

namespace {

using formats::quoted_name;
using formats::refuse;
using formats::refuse_tensor;

constexpr std::string_view single_name = "model.safetensors";
constexpr std::string_view index_name = "model.safetensors.index.json";

void check_folder(const std::filesystem::path& folder) {
  std::error_code ignored;  // what cannot be looked at is not there for us
  const std::filesystem::file_status status = std::filesystem::status(folder, ignored);
  if (!std::filesystem::exists(status)) {
    refuse(folder.native(), "there is no such folder", "give the folder that holds the model");
  }
  if (!std::filesystem::is_directory(status)) {
    refuse(folder.native(), "this is not a folder", "give the folder that holds the model");
  }
}

// A link counts even when it leads nowhere: opening it then says which file is missing.
bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

std::map<std::string, std::string> read_index(const std::filesystem::path& path) {
  const formats::mapped_file file{path};
  const std::span<const std::byte> bytes = file.bytes();
  return parse_shard_index({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                           path.native());
}

}  // namespace

model_files::model_files(const std::filesystem::path& folder) : folder_{folder} {
  check_folder(folder);
  const bool single_file = is_there(folder / single_name);
  if (is_there(folder / index_name)) {
    open_shards(folder / index_name, single_file);
  } else if (single_file) {
    files_.emplace_back(folder / single_name);
  } else {
    refuse(folder.native(),
           fmt::format("the folder has neither {} nor {}", single_name, index_name),
           "give the folder that holds the model");
  }
  for (const safetensors_file& file : files_) add_tensors_of(file);
}

void model_files::open_shards(const std::filesystem::path& index_path, bool single_file_beside) {
  const std::map<std::string, std::string> shard_of = read_index(index_path);
  std::map<std::string_view, std::size_t> file_of;
  for (const auto& [tensor, shard] : shard_of) file_of.emplace(shard, 0);
  if (single_file_beside && !file_of.contains(single_name)) {
    refuse(folder_.native(),
           fmt::format("the folder has {} and an index that does not name it", single_name),
           "keep the one that is meant");
  }
  for (auto& [shard, file] : file_of) {
    file = files_.size();
    files_.emplace_back(folder_ / shard);
  }
  for (const auto& [tensor, shard] : shard_of) {
    if (files_[file_of.at(shard)].find(tensor) != nullptr) continue;
    refuse_tensor(
        index_path.native(),
        fmt::format("the shard {} lacks a tensor that the index says it has", quoted_name(shard)),
        tensor, "fetch the index and the shards again, from one place");
  }
}

void model_files::add_tensors_of(const safetensors_file& file) {
  for (const stored_tensor& tensor : file.tensors()) {
    if (by_name_.emplace(tensor.name, &tensor).second) continue;
    const auto first = std::ranges::find_if(
        files_, [&](const safetensors_file& other) { return other.find(tensor.name) != nullptr; });
    refuse_tensor(file.path().native(),
                  fmt::format("the tensor is in the shard {} too",
                              quoted_name(first->path().filename().native())),
                  tensor.name, "keep it in one of them");
  }
}

const stored_tensor* model_files::find(std::string_view name) const noexcept {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const stored_tensor& model_files::at(std::string_view name) const {
  if (const stored_tensor* const tensor = find(name)) return *tensor;
  refuse_tensor(folder_.native(), "the model has no such tensor", name,
                "check the name, or that this is the right model");
}

}  // namespace reprise
