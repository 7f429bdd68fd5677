// Loading weights: storage types, and files that do not fit their configuration.
#include "workloads/decode/weights.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "reprise/base/error.hpp"
#include "reprise/device/enqueue.hpp"
#include "tests/support/devices.hpp"
#include "tests/support/paths.hpp"

namespace reprise::decode {
namespace {

struct file_tensor {
  std::string type;
  std::vector<std::int64_t> shape;
  std::string bytes;
};

void write_safetensors(const std::filesystem::path& file,
                       const std::map<std::string, file_tensor>& tensors) {
  nlohmann::json header = nlohmann::json::object();
  std::string data;
  for (const auto& [name, t] : tensors) {
    header[name] = {{"dtype", t.type},
                    {"shape", t.shape},
                    {"data_offsets", {data.size(), data.size() + t.bytes.size()}}};
    data += t.bytes;
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  std::ofstream out{file, std::ios::binary};
  out.write(reinterpret_cast<const char*>(&length), sizeof length);
  out << text << data;
}

// A model of one layer and width 16, every weight a half, in any of the three file types.
class weights_test : public ::testing::Test {
 protected:
  void SetUp() override {
    config.vocabulary = 4;
    config.width = 16;
    config.inner_width = 8;
    config.layers = 1;
    config.heads = 2;
    config.kv_heads = 1;
    config.head_dim = 8;
    config.context = 16;
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder = std::filesystem::path{::testing::TempDir()} / test->name();
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  static std::string halves(const std::string& type, std::int64_t count) {
    std::string one;
    if (type == "F32") one.assign("\x00\x00\x00\x3f", 4);
    if (type == "F16") one.assign("\x00\x38", 2);
    if (type == "BF16") one.assign("\x00\x3f", 2);
    std::string all;
    for (std::int64_t i = 0; i < count; ++i) all += one;
    return all;
  }

  std::map<std::string, file_tensor> model(const std::string& type) const {
    const std::map<std::string, std::vector<std::int64_t>> shapes{
        {"model.embed_tokens.weight", {4, 16}},
        {"model.layers.0.input_layernorm.weight", {16}},
        {"model.layers.0.self_attn.q_proj.weight", {16, 16}},
        {"model.layers.0.self_attn.k_proj.weight", {8, 16}},
        {"model.layers.0.self_attn.v_proj.weight", {8, 16}},
        {"model.layers.0.self_attn.o_proj.weight", {16, 16}},
        {"model.layers.0.post_attention_layernorm.weight", {16}},
        {"model.layers.0.mlp.gate_proj.weight", {8, 16}},
        {"model.layers.0.mlp.up_proj.weight", {8, 16}},
        {"model.layers.0.mlp.down_proj.weight", {16, 8}},
        {"model.norm.weight", {16}},
        {"lm_head.weight", {4, 16}},
    };
    std::map<std::string, file_tensor> tensors;
    for (const auto& [name, shape] : shapes) {
      std::int64_t count = 1;
      for (const std::int64_t e : shape) count *= e;
      tensors[name] = {type, shape, halves(type, count)};
    }
    return tensors;
  }

  model_weights load(const std::map<std::string, file_tensor>& tensors,
                     weight_storage storage = weight_storage::as_file) {
    write_safetensors(folder / "model.safetensors", tensors);
    return load_weights(memory, work, folder, config, storage);
  }

  std::string refusal(const std::map<std::string, file_tensor>& tensors) {
    try {
      load(tensors);
    } catch (const usage_error& wrong) {
      return wrong.what();
    }
    ADD_FAILURE() << "accepted";
    return {};
  }

  float first(const parameter& weight) {
    std::vector<std::byte> host(weight.value.bytes());
    copy_bytes(work, weight.value.data, host.data(), host.size());
    stream_ref{work}.synchronize();
    if (weight.value.type == dtype::f32) {
      float value = 0;
      std::memcpy(&value, host.data(), sizeof value);
      return value;
    }
    bf16 value{};
    std::memcpy(&value, host.data(), sizeof value);
    return widen(value);
  }

  model_config config;
  std::filesystem::path folder;
  device opened = test::open_for_test("cpu");
  stream work{opened};
  pool memory{opened, "test"};
};

TEST_F(weights_test, storage_follows_the_file_unless_it_is_chosen) {
  EXPECT_EQ(load(model("BF16")).storage, dtype::bf16);
  EXPECT_EQ(load(model("F32")).storage, dtype::f32);
  EXPECT_EQ(load(model("F16")).storage, dtype::f32);
  EXPECT_EQ(load(model("BF16"), weight_storage::f32).storage, dtype::f32);
  EXPECT_EQ(load(model("F32"), weight_storage::bf16).storage, dtype::bf16);
}

TEST_F(weights_test, every_file_type_gives_the_same_values_in_every_storage) {
  for (const char* type : {"F32", "F16", "BF16"}) {
    for (const weight_storage s : {weight_storage::f32, weight_storage::bf16}) {
      const model_weights weights = load(model(type), s);
      EXPECT_EQ(first(weights.output), 0.5F) << type;
      EXPECT_EQ(first(weights.layers[0].down), 0.5F) << type;
    }
  }
}

TEST_F(weights_test, a_mixed_file_is_stored_wide) {
  auto tensors = model("BF16");
  tensors["model.norm.weight"] = {"F32", {16}, halves("F32", 16)};
  EXPECT_EQ(load(tensors).storage, dtype::f32);
}

TEST_F(weights_test, a_tied_output_is_the_embedding_itself) {
  config.tied_output = true;
  auto tensors = model("F32");
  tensors.erase("lm_head.weight");
  const model_weights weights = load(tensors);
  EXPECT_EQ(weights.output.value.data, weights.embedding.value.data);
}

TEST_F(weights_test, a_missing_tensor_is_named) {
  auto tensors = model("F32");
  tensors.erase("model.layers.0.mlp.up_proj.weight");
  EXPECT_NE(refusal(tensors).find("model.layers.0.mlp.up_proj.weight"), std::string::npos);
}

TEST_F(weights_test, a_shape_that_the_configuration_does_not_give_is_named_with_both) {
  auto tensors = model("F32");
  tensors["model.layers.0.self_attn.k_proj.weight"] = {"F32", {16, 16}, halves("F32", 256)};
  const std::string text = refusal(tensors);
  EXPECT_NE(text.find("k_proj"), std::string::npos) << text;
  EXPECT_NE(text.find("[16, 16]"), std::string::npos) << text;
  EXPECT_NE(text.find("[8, 16]"), std::string::npos) << text;
}

TEST_F(weights_test, integers_are_no_weights) {
  auto tensors = model("F32");
  tensors["model.norm.weight"] = {"I32", {16}, halves("F32", 16)};
  EXPECT_NE(refusal(tensors).find("i32"), std::string::npos);
}

TEST_F(weights_test, a_tensor_without_a_place_is_refused_and_a_bias_by_its_name) {
  auto tensors = model("F32");
  tensors["model.layers.0.self_attn.q_proj.bias"] = {"F32", {16}, halves("F32", 16)};
  EXPECT_NE(refusal(tensors).find("biases are not built"), std::string::npos);
  tensors = model("F32");
  tensors["model.layers.1.input_layernorm.weight"] = {"F32", {16}, halves("F32", 16)};
  EXPECT_NE(refusal(tensors).find("has no place"), std::string::npos);
}

TEST_F(weights_test, drawn_weights_are_the_same_for_a_seed_and_of_order_one_over_the_fan_in) {
  const model_weights a = random_weights(memory, work, config, weight_storage::f32, 1);
  const model_weights b = random_weights(memory, work, config, weight_storage::f32, 1);
  const model_weights c = random_weights(memory, work, config, weight_storage::f32, 2);
  EXPECT_EQ(first(a.layers[0].query), first(b.layers[0].query));
  EXPECT_NE(first(a.layers[0].query), first(c.layers[0].query));
  EXPECT_NE(first(a.layers[0].query), first(a.layers[0].attention_out));
  EXPECT_EQ(first(a.final_norm), 1.0F);
  EXPECT_LT(std::abs(first(a.layers[0].query)), 6.0F / 4.0F);
}

// Sizes without a model may be larger than the host's memory: nothing of them passes through it.
TEST_F(weights_test, drawn_weights_are_bf16_unless_asked_and_never_lie_on_the_host) {
  const auto calls = std::make_shared<call_counts>();
  const device counted = open_device("cpu", {.threads = 1, .counts = calls});
  stream on{counted};
  pool drawn{counted, "test"};
  EXPECT_EQ(random_weights(drawn, on, config, weight_storage::as_file, 1).storage, dtype::bf16);
  EXPECT_EQ(random_weights(drawn, on, config, weight_storage::f32, 1).storage, dtype::f32);
  EXPECT_EQ((*calls)[seam_call::copy], 0U);
  EXPECT_GT((*calls)[seam_call::kernel], 0U);
}

}  // namespace
}  // namespace reprise::decode
