#include "workloads/denoise/denoiser_weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "reprise/device/enqueue.hpp"
#include "reprise/formats/model_files.hpp"
#include "reprise/formats/refusal.hpp"

namespace reprise::denoise {

namespace {

float element(const stored_tensor& tensor, std::size_t i) {
  const std::byte* const at = tensor.bytes.data() + i * size_of(tensor.type);
  if (tensor.type == dtype::f32) {
    float value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  bf16 half{};
  std::memcpy(&half.bits, at, sizeof half.bits);
  return widen(half);
}

std::vector<float> values_of(const model_files& files, const std::string& name, const dims& shape) {
  const stored_tensor& tensor = files.at(name);
  const std::vector<std::int64_t> expected{shape.extent.begin(), shape.extent.begin() + shape.rank};
  if (tensor.shape != expected) {
    formats::refuse_tensor(files.folder().native(),
                           fmt::format("its shape is [{}], but config.json makes it {}",
                                       fmt::join(tensor.shape, ", "), to_string(shape)),
                           name, "give files that are of one model");
  }
  if (tensor.type != dtype::f32 && tensor.type != dtype::bf16) {
    formats::refuse_tensor(files.folder().native(), fmt::format("it is {}", name_of(tensor.type)),
                           name, "give weights of bf16 or f32");
  }
  std::vector<float> values(shape.count());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = element(tensor, i);
  return values;
}

}  // namespace

denoiser_weights::denoiser_weights(pool& into, stream_ref stream,
                                   const std::filesystem::path& folder,
                                   const denoiser_config& config)
    : pool_{&into} {
  const model_files files{folder};
  add_places(config);
  for (place& at : places_) at.values = values_of(files, at.name, at.shape);
  // A tensor that nobody asks for would change the images if it were left out in silence.
  for (const stored_tensor& tensor : files.tensors()) {
    if (std::ranges::find(places_, tensor.name, &place::name) != places_.end()) continue;
    formats::refuse_tensor(folder.native(), "a denoiser of this config.json has no such tensor",
                           tensor.name, "give files that are of one model");
  }
  for (place& at : places_) upload(at, stream);
}

void denoiser_weights::add_places(const denoiser_config& c) {
  blocks.resize(static_cast<std::size_t>(c.blocks));
  const auto add = [&](parameter& into, std::string name, const dims& shape) {
    places_.push_back({&into, std::move(name), shape, {}, {}});
  };
  const auto add_layer = [&](layer_weights& into, const std::string& name, std::int64_t out,
                             std::int64_t in) {
    add(into.matrix, name + ".weight", {out, in});
    add(into.bias, name + ".bias", {out});
  };
  const auto add_norm = [&](norm_weights& into, const std::string& name) {
    add(into.gain, name + ".weight", {c.width});
    add(into.bias, name + ".bias", {c.width});
  };
  add_layer(input, "input", c.width, c.pixels());
  add_layer(time_in, "time.in", c.condition_width, c.time_width);
  add_layer(time_out, "time.out", c.condition_width, c.condition_width);
  add(classes, "class.weight", {c.classes() + 1, c.condition_width});
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::string at = fmt::format("blocks.{}.", i);
    block_weights& b = blocks[i];
    add_norm(b.norm, at + "norm");
    add_layer(b.up, at + "up", c.inner_width, c.width);
    add(b.condition, at + "condition.weight", {c.inner_width, c.condition_width});
    add_layer(b.down, at + "down", c.width, c.inner_width);
  }
  add_norm(norm, "norm");
  add_layer(output, "output", c.pixels(), c.width);
}

void denoiser_weights::upload(place& at, stream_ref stream) {
  tensor_ref tensor{nullptr, dtype::f32, at.shape, contiguous_strides(at.shape)};
  block made{*pool_, tensor.bytes(), stream};
  tensor.data = made.data();
  copy_bytes(stream, reinterpret_cast<const std::byte*>(at.values.data()), tensor.data,
             tensor.bytes());
  at.memory = std::move(made);
  at.into->value = tensor;
}

void denoiser_weights::move(stream_ref stream) {
  // The old blocks live until all of the new ones are made, so that every address changes.
  std::vector<block> old;
  for (place& at : places_) {
    at.memory.freed_on(stream);  // and not in the order of the stream that loaded it
    old.push_back(std::move(at.memory));
    upload(at, stream);
    at.into->version.bump();
  }
}

void denoiser_weights::declare(signature& in) const {
  for (const place& at : places_) in.uses(at.name, *at.into);
}

}  // namespace reprise::denoise
