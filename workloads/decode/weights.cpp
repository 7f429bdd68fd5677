#include "workloads/decode/weights.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <set>
#include <string>

#include "reprise/base/error.hpp"
#include "reprise/formats/model_files.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/ops/random.hpp"

namespace reprise::decode {

namespace {

// One tensor of the model: where it belongs, what it is called, what shape it must have.
struct place {
  parameter* into;
  std::string name;
  dims shape;
};

// Every tensor that a configuration asks for, in the order of the forward pass.
std::vector<place> places_of(model_weights& weights, const model_config& c) {
  weights.layers.resize(static_cast<std::size_t>(c.layers));
  const std::int64_t queries = c.heads * c.head_dim;
  const std::int64_t keys = c.kv_heads * c.head_dim;
  std::vector<place> places{
      {&weights.embedding, "model.embed_tokens.weight", {c.vocabulary, c.width}}};
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    layer_weights& l = weights.layers[i];
    const std::string at = fmt::format("model.layers.{}.", i);
    places.push_back({&l.attention_norm, at + "input_layernorm.weight", {c.width}});
    places.push_back({&l.query, at + "self_attn.q_proj.weight", {queries, c.width}});
    places.push_back({&l.key, at + "self_attn.k_proj.weight", {keys, c.width}});
    places.push_back({&l.value, at + "self_attn.v_proj.weight", {keys, c.width}});
    places.push_back({&l.attention_out, at + "self_attn.o_proj.weight", {c.width, queries}});
    places.push_back({&l.mlp_norm, at + "post_attention_layernorm.weight", {c.width}});
    places.push_back({&l.gate, at + "mlp.gate_proj.weight", {c.inner_width, c.width}});
    places.push_back({&l.up, at + "mlp.up_proj.weight", {c.inner_width, c.width}});
    places.push_back({&l.down, at + "mlp.down_proj.weight", {c.width, c.inner_width}});
  }
  places.push_back({&weights.final_norm, "model.norm.weight", {c.width}});
  if (!c.tied_output)
    places.push_back({&weights.output, "lm_head.weight", {c.vocabulary, c.width}});
  return places;
}

void allocate(model_weights& weights, const place& at, pool& into, stream_ref stream) {
  tensor_ref tensor{nullptr, weights.storage, at.shape, contiguous_strides(at.shape)};
  weights.memory.emplace_back(into, tensor.bytes(), stream);
  tensor.data = weights.memory.back().data();
  at.into->value = tensor;
}

bool is_shape(const stored_tensor& tensor, const dims& shape) {
  if (static_cast<int>(tensor.shape.size()) != shape.rank) return false;
  for (int i = 0; i < shape.rank; ++i) {
    if (tensor.shape[static_cast<std::size_t>(i)] != shape[i]) return false;
  }
  return true;
}

const stored_tensor& find(const model_files& files, const place& at) {
  const stored_tensor& tensor = files.at(at.name);
  if (!is_shape(tensor, at.shape)) {
    throw usage_error{fmt::format(
        "{}: tensor {} is [{}], but config.json makes it {}; the two are not "
        "of one model",
        files.folder().string(), at.name, fmt::join(tensor.shape, ", "), to_string(at.shape))};
  }
  if (tensor.type != dtype::bf16 && tensor.type != dtype::f16 && tensor.type != dtype::f32) {
    throw usage_error{fmt::format("{}: tensor {} is {}; weights are bf16, f16 or f32",
                                  files.folder().string(), at.name, name_of(tensor.type))};
  }
  return tensor;
}

// A tensor that nobody asks for would change what the model says if it were left out in silence.
void refuse_unknown(const model_files& files, const std::vector<place>& places,
                    const model_config& config) {
  std::set<std::string_view> known;
  for (const place& at : places) known.insert(at.name);
  for (const stored_tensor& tensor : files.tensors()) {
    if (known.contains(tensor.name)) continue;
    const bool harmless = tensor.name.ends_with("rotary_emb.inv_freq") ||
                          (config.tied_output && tensor.name == "lm_head.weight");
    if (harmless) continue;
    throw usage_error{fmt::format("{}: tensor {} has no place in a LlamaForCausalLM of {} layers{}",
                                  files.folder().string(), tensor.name, config.layers,
                                  tensor.name.ends_with(".bias") ? "; biases are not built" : "")};
  }
}

float element(const stored_tensor& tensor, std::size_t i) {
  const std::byte* at = tensor.bytes.data() + i * size_of(tensor.type);
  std::uint16_t half = 0;
  float value = 0;
  switch (tensor.type) {
    case dtype::f32: std::memcpy(&value, at, sizeof value); return value;
    case dtype::f16: std::memcpy(&half, at, sizeof half); return half_to_float(half);
    default: std::memcpy(&half, at, sizeof half); return widen(bf16{half});
  }
}

// Copies one tensor to its place, converting where the storage differs from the file's type.
void copy_in(const stored_tensor& from, const tensor_ref& to, stream_ref stream) {
  if (from.type == to.type) {
    copy_bytes(stream, from.bytes.data(), to.data, from.bytes.size());
    return;
  }
  const std::size_t count = to.shape.count();
  const auto send = [&]<class T>(T) {
    std::vector<T> converted(count);
    for (std::size_t i = 0; i < count; ++i) converted[i] = narrow<T>(element(from, i));
    copy_bytes(stream, reinterpret_cast<const std::byte*>(converted.data()), to.data, to.bytes());
  };
  if (to.type == dtype::bf16) {
    send(bf16{});
  } else {
    send(float{});
  }
}

void tie(model_weights& weights, const model_config& config) {
  if (config.tied_output) weights.output.value = weights.embedding.value;
}

}  // namespace

model_weights load_weights(pool& into, stream_ref stream, const std::filesystem::path& folder,
                           const model_config& config, weight_storage storage) {
  const model_files files{folder};
  model_weights weights;
  const std::vector<place> places = places_of(weights, config);
  bool all_bf16 = true;
  for (const place& at : places) all_bf16 = find(files, at).type == dtype::bf16 && all_bf16;
  refuse_unknown(files, places, config);

  const bool to_bf16 =
      storage == weight_storage::as_file ? all_bf16 : storage == weight_storage::bf16;
  weights.storage = to_bf16 ? dtype::bf16 : dtype::f32;
  for (const place& at : places) {
    allocate(weights, at, into, stream);
    copy_in(find(files, at), at.into->value, stream);
  }
  tie(weights, config);
  return weights;
}

model_weights random_weights(pool& into, stream_ref stream, const model_config& config,
                             weight_storage storage, std::uint64_t seed) {
  model_weights weights;
  weights.storage = storage == weight_storage::f32 ? dtype::f32 : dtype::bf16;
  const std::vector<place> places = places_of(weights, config);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const place& at = places[i];
    allocate(weights, at, into, stream);
    const tensor_ref& tensor = at.into->value;
    const auto draw = [&]<class T>(T one) {
      const view<T> elements = elements_of<T>(tensor);
      if (at.shape.rank == 1) {
        fill(stream, write<T>{elements}, one);  // a norm's gain
        return;
      }
      // Variance 1/fan-in keeps activations of order one through any depth.
      const float scale = 1.0F / std::sqrt(static_cast<float>(at.shape[1]));
      launch(stream, random_normal<T>, write<T>{elements}, seed, i, scale);
    };
    if (weights.storage == dtype::bf16) {
      draw(narrow<bf16>(1.0F));
    } else {
      draw(1.0F);
    }
  }
  tie(weights, config);
  return weights;
}

}  // namespace reprise::decode
