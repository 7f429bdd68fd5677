#include "reprise/formats/safetensors.hpp"

#include <utility>

#include "reprise/formats/refusal.hpp"

namespace reprise {

safetensors_file::safetensors_file(const std::filesystem::path& path) : path_{path}, file_{path} {
  const std::span<const std::byte> bytes = file_.bytes();
  safetensors_header header = parse_safetensors_header(bytes, bytes.size(), path.native());

  tensors_.reserve(header.tensors.size());
  for (safetensors_entry& entry : header.tensors) {
    tensors_.push_back({.name = std::move(entry.name),
                        .type = entry.type,
                        .shape = std::move(entry.shape),
                        .bytes = bytes.subspan(entry.begin, entry.end - entry.begin)});
  }
  by_name_.reserve(tensors_.size());
  for (const stored_tensor& tensor : tensors_) by_name_.emplace(tensor.name, &tensor);
  metadata_ = std::move(header.metadata);
}

const stored_tensor* safetensors_file::find(std::string_view name) const noexcept {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const stored_tensor& safetensors_file::at(std::string_view name) const {
  if (const stored_tensor* const tensor = find(name)) return *tensor;
  formats::refuse_tensor(path_.native(), "the file has no such tensor", name,
                         "check the name, or that this is the right file");
}

}  // namespace reprise
