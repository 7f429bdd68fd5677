#include "workloads/decode/model_config.hpp"

#include <fmt/format.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "reprise/base/error.hpp"

namespace reprise::decode {

namespace {

using json = nlohmann::json;

constexpr std::uintmax_t largest_file = 1 << 20;

class reader {
 public:
  explicit reader(const std::filesystem::path& file) : file_{file.string()} {
    std::error_code failed;
    const std::uintmax_t size = std::filesystem::file_size(file, failed);
    if (failed) refuse("cannot be read; give a config.json, or a model folder that has one");
    if (size > largest_file) refuse("is larger than 1 MiB; that is no model configuration");
    std::ifstream in{file, std::ios::binary};
    root_ = json::parse(in, nullptr, false);
    if (!root_.is_object()) refuse("is not a JSON object; give the model's own config.json");
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw usage_error{fmt::format("{}: {}", file_, what)};
  }

  const json* find(const char* field) const {
    const auto at = root_.find(field);
    return at == root_.end() || at->is_null() ? nullptr : &*at;
  }

  std::int64_t integer(const char* field, std::int64_t least, std::int64_t most) const {
    const json* at = find(field);
    if (at == nullptr) refuse(fmt::format("'{}' is missing; a Llama has it", field));
    return checked(field, *at, least, most);
  }
  std::int64_t integer(const char* field, std::int64_t least, std::int64_t most,
                       std::int64_t otherwise) const {
    const json* at = find(field);
    return at == nullptr ? otherwise : checked(field, *at, least, most);
  }
  double real(const char* field, double least, double most, double otherwise) const {
    const json* at = find(field);
    if (at == nullptr) return otherwise;
    if (!at->is_number() || !(at->get<double>() >= least && at->get<double>() <= most)) {
      refuse(fmt::format("'{}' must be a number from {} to {}", field, least, most));
    }
    return at->get<double>();
  }
  bool flag(const char* field, bool otherwise) const {
    const json* at = find(field);
    if (at == nullptr) return otherwise;
    if (!at->is_boolean()) refuse(fmt::format("'{}' must be true or false", field));
    return at->get<bool>();
  }
  std::string text(const char* field) const {
    const json* at = find(field);
    if (at == nullptr) return {};
    if (!at->is_string()) refuse(fmt::format("'{}' must be a string", field));
    return at->get<std::string>();
  }

 private:
  std::int64_t checked(const char* field, const json& at, std::int64_t least,
                       std::int64_t most) const {
    const bool whole = at.is_number_integer() &&
                       !(at.is_number_unsigned() &&
                         at.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max());
    if (!whole || at.get<std::int64_t>() < least || at.get<std::int64_t>() > most) {
      refuse(fmt::format("'{}' must be a whole number from {} to {}", field, least, most));
    }
    return at.get<std::int64_t>();
  }

  std::string file_;
  json root_;
};

// As a person would see it, whatever it holds.
std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

void require_llama(const reader& in) {
  const std::string type = in.text("model_type");
  const json* names = in.find("architectures");
  const json llama = json::array({"LlamaForCausalLM"});
  if (names != nullptr && *names != llama) {
    in.refuse(fmt::format("architecture {} is not built; LlamaForCausalLM is", shown(*names)));
  }
  if (names == nullptr && type.empty()) {
    in.refuse("names no architecture; LlamaForCausalLM is the one that is built");
  }
  if (!type.empty() && type != "llama") {
    in.refuse(fmt::format("model type {} is not built; llama is", shown(json{type}.front())));
  }
}

void require_no_extras(const reader& in) {
  if (const json* scaling = in.find("rope_scaling")) {
    in.refuse(
        fmt::format("'rope_scaling' is {}: scaled rotary bases are not built; use a model with "
                    "a plain base",
                    shown(*scaling)));
  }
  for (const char* bias : {"attention_bias", "mlp_bias"}) {
    if (in.flag(bias, false)) {
      in.refuse(fmt::format("'{}' is true: biases are not built; use a model without them", bias));
    }
  }
  const std::string activation = in.text("hidden_act");
  if (!activation.empty() && activation != "silu") {
    in.refuse(
        fmt::format("'hidden_act' is {}: only silu is built", shown(json{activation}.front())));
  }
  const json* window = in.find("sliding_window");
  if (window != nullptr) in.refuse("'sliding_window' is set: sliding attention is not built");
}

// Newer files keep the rotary base in an object of its own.
double rotary_base(const reader& in) {
  const json* nested = in.find("rope_parameters");
  if (nested == nullptr) return in.real("rope_theta", 1.0, 1e12, 10000.0);
  const bool plain = nested->is_object() &&
                     nested->value("rope_type", json{"default"}.front()) == json{"default"}.front();
  const json base = plain ? nested->value("rope_theta", json{}) : json{};
  if (!base.is_number() || !(base.get<double>() >= 1.0 && base.get<double>() <= 1e12)) {
    in.refuse(
        fmt::format("'rope_parameters' is {}: scaled rotary bases are not built; use a model "
                    "with a plain base",
                    shown(*nested)));
  }
  return base.get<double>();
}

std::vector<std::int32_t> end_tokens(const reader& in, std::int64_t vocabulary) {
  const json* given = in.find("eos_token_id");
  if (given == nullptr) return {};
  const json list = given->is_array() ? *given : json::array({*given});
  std::vector<std::int32_t> ends;
  for (const json& id : list) {
    const bool whole = id.is_number_integer() && id >= 0 && id < vocabulary;
    if (!whole) in.refuse("'eos_token_id' must be a token of the vocabulary, or a list of them");
    ends.push_back(id.get<std::int32_t>());
  }
  return ends;
}

}  // namespace

model_config read_model_config(const std::filesystem::path& file) {
  const reader in{file};
  require_llama(in);
  require_no_extras(in);

  model_config config;
  config.vocabulary = in.integer("vocab_size", 1, 1 << 24);
  config.width = in.integer("hidden_size", 1, 1 << 20);
  config.inner_width = in.integer("intermediate_size", 1, 1 << 22);
  config.layers = in.integer("num_hidden_layers", 1, 4096);
  config.heads = in.integer("num_attention_heads", 1, 4096);
  config.kv_heads = in.integer("num_key_value_heads", 1, 4096, config.heads);
  config.head_dim = in.integer("head_dim", 1, 256, config.width / config.heads);
  config.context = in.integer("max_position_embeddings", 1, 1 << 24);
  config.norm_epsilon = static_cast<float>(in.real("rms_norm_eps", 0.0, 1.0, 1e-6));
  config.rotary_base = rotary_base(in);
  config.tied_output = in.flag("tie_word_embeddings", false);
  config.byte_tokens = in.text("tokenizer") == "bytes";
  config.end_tokens = end_tokens(in, config.vocabulary);

  if (config.heads % config.kv_heads != 0) {
    in.refuse(fmt::format("{} query heads do not divide among {} key/value heads", config.heads,
                          config.kv_heads));
  }
  if (config.heads / config.kv_heads > 16) {
    in.refuse(fmt::format("{} query heads share a key/value head; at most 16 are built",
                          config.heads / config.kv_heads));
  }
  if (config.head_dim % 8 != 0 || config.head_dim > 256) {
    in.refuse(
        fmt::format("heads of {} are not built; multiples of 8 up to 256 are", config.head_dim));
  }
  if (config.byte_tokens && config.vocabulary != 256) {
    in.refuse(fmt::format("'tokenizer' says bytes and 'vocab_size' {}; bytes are 256",
                          config.vocabulary));
  }
  return config;
}

}  // namespace reprise::decode
