#include "workloads/decode/model_config.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "reprise/base/error.hpp"
#include "tests/support/paths.hpp"

namespace reprise::decode {
namespace {

using json = nlohmann::json;

class model_config_test : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ifstream in{test::tiny_llama() / "config.json"};
    good = json::parse(in);
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    file = std::filesystem::path{::testing::TempDir()} / (std::string{test->name()} + ".json");
  }
  void TearDown() override { std::filesystem::remove(file); }

  model_config read(const std::string& text) const {
    std::ofstream{file} << text;
    return read_model_config(file);
  }

  // The one line that refuses the good configuration after `change`.
  std::string refusal(const std::function<void(json&)>& change) const {
    json changed = good;
    change(changed);
    try {
      read(changed.dump());
    } catch (const usage_error& wrong) {
      const std::string text = wrong.what();
      EXPECT_EQ(text.find('\n'), std::string::npos);
      EXPECT_TRUE(text.starts_with(file.string())) << text;
      return text;
    }
    ADD_FAILURE() << "accepted: " << changed.dump();
    return {};
  }

  json good;
  std::filesystem::path file;
};

TEST_F(model_config_test, the_shipped_model_is_read) {
  const model_config c = read(good.dump());
  EXPECT_EQ(c.vocabulary, 256);
  EXPECT_EQ(c.width, 192);
  EXPECT_EQ(c.inner_width, 512);
  EXPECT_EQ(c.layers, 8);
  EXPECT_EQ(c.heads, 6);
  EXPECT_EQ(c.kv_heads, 2);
  EXPECT_EQ(c.head_dim, 32);
  EXPECT_EQ(c.context, 1024);
  EXPECT_EQ(c.norm_epsilon, 1e-5F);
  EXPECT_EQ(c.rotary_base, 10000.0);
  EXPECT_TRUE(c.tied_output);
  EXPECT_TRUE(c.byte_tokens);
}

TEST_F(model_config_test, what_a_file_may_leave_out_has_the_usual_value) {
  for (const char* field : {"num_key_value_heads", "head_dim", "rope_theta", "tie_word_embeddings",
                            "tokenizer", "attention_bias", "mlp_bias", "hidden_act"}) {
    good.erase(field);
  }
  const model_config c = read(good.dump());
  EXPECT_EQ(c.kv_heads, 6);
  EXPECT_EQ(c.head_dim, 32);
  EXPECT_EQ(c.rotary_base, 10000.0);
  EXPECT_FALSE(c.tied_output);
  EXPECT_FALSE(c.byte_tokens);
}

TEST_F(model_config_test, a_file_that_is_not_there_or_no_json_object_is_refused) {
  EXPECT_THROW(read_model_config(file), usage_error);
  for (const char* text : {"", "[]", "{", "null", "\xff", "{\"a\":1,}"}) {
    EXPECT_THROW(read(text), usage_error) << text;
  }
  EXPECT_THROW(read_model_config(file.parent_path()), usage_error);
  EXPECT_THROW(read(std::string(200000, '[')), usage_error);
}

TEST_F(model_config_test, other_architectures_are_refused_by_name) {
  EXPECT_NE(
      refusal([](json& c) { c["architectures"] = {"Qwen3ForCausalLM"}; }).find("Qwen3ForCausalLM"),
      std::string::npos);
  EXPECT_NE(refusal([](json& c) { c["model_type"] = "mistral"; }).find("mistral"),
            std::string::npos);
  refusal([](json& c) {
    c.erase("architectures");
    c.erase("model_type");
  });
  refusal([](json& c) { c["architectures"] = 3; });
}

TEST_F(model_config_test, scaled_rotary_bases_biases_and_other_activations_are_refused_by_name) {
  EXPECT_NE(refusal([](json& c) {
              c["rope_scaling"] = {{"rope_type", "llama3"}, {"factor", 8}};
            }).find("scaled rotary bases"),
            std::string::npos);
  EXPECT_NE(refusal([](json& c) {
              c["rope_parameters"] = {{"rope_type", "yarn"}, {"rope_theta", 10000.0}};
            }).find("scaled rotary bases"),
            std::string::npos);
  EXPECT_NE(refusal([](json& c) { c["attention_bias"] = true; }).find("attention_bias"),
            std::string::npos);
  EXPECT_NE(refusal([](json& c) { c["mlp_bias"] = true; }).find("mlp_bias"), std::string::npos);
  EXPECT_NE(refusal([](json& c) { c["hidden_act"] = "gelu"; }).find("gelu"), std::string::npos);
  refusal([](json& c) { c["sliding_window"] = 4096; });
}

TEST_F(model_config_test, a_plain_rotary_base_in_the_newer_place_is_read) {
  good["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 500000.0}};
  good.erase("rope_theta");
  EXPECT_EQ(read(good.dump()).rotary_base, 500000.0);
}

TEST_F(model_config_test, each_size_is_checked_by_name) {
  for (const char* field : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                            "num_attention_heads", "max_position_embeddings"}) {
    for (const json& wrong : {json{}, json(0), json(-1), json(1.5), json("8"), json(true),
                              json(std::uint64_t{1} << 63)}) {
      const std::string text = refusal([&](json& c) { c[field] = wrong; });
      EXPECT_NE(text.find(field), std::string::npos) << text;
    }
  }
}

TEST_F(model_config_test, heads_that_do_not_divide_or_are_not_built_are_refused) {
  refusal([](json& c) { c["num_key_value_heads"] = 4; });
  refusal([](json& c) { c["num_key_value_heads"] = 12; });
  refusal([](json& c) { c["head_dim"] = 30; });
  refusal([](json& c) { c["head_dim"] = 512; });
  refusal([](json& c) {
    c["num_attention_heads"] = 64;
    c["num_key_value_heads"] = 1;
  });
  refusal([](json& c) { c["vocab_size"] = 300; });
}

TEST_F(model_config_test, end_tokens_are_one_or_several_of_the_vocabulary) {
  good["eos_token_id"] = 3;
  EXPECT_EQ(read(good.dump()).end_tokens, std::vector<std::int32_t>{3});
  good["eos_token_id"] = {3, 5};
  EXPECT_EQ(read(good.dump()).end_tokens, (std::vector<std::int32_t>{3, 5}));
  refusal([](json& c) { c["eos_token_id"] = 256; });
  refusal([](json& c) { c["eos_token_id"] = -1; });
  refusal([](json& c) { c["eos_token_id"] = "end"; });
}

}  // namespace
}  // namespace reprise::decode
