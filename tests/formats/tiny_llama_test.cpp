// The model that ships with the repository, read as a user would.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>

#include "reprise/formats/model_files.hpp"
#include "tests/support/paths.hpp"

namespace reprise {
namespace {

TEST(tiny_llama, every_weight_is_there_with_its_shape) {
  const model_files model{test::tiny_llama()};
  EXPECT_EQ(std::ranges::distance(model.tensors()), 2 + 8 * 9);
  EXPECT_EQ(model.at("model.embed_tokens.weight").shape, (std::vector<std::int64_t>{256, 192}));
  EXPECT_EQ(model.at("model.norm.weight").shape, (std::vector<std::int64_t>{192}));
  for (int layer = 0; layer < 8; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    const auto shape = [&](std::string_view name) {
      return model.at(prefix + std::string{name} + ".weight").shape;
    };
    EXPECT_EQ(shape("self_attn.q_proj"), (std::vector<std::int64_t>{192, 192}));
    EXPECT_EQ(shape("self_attn.k_proj"), (std::vector<std::int64_t>{64, 192}));
    EXPECT_EQ(shape("self_attn.v_proj"), (std::vector<std::int64_t>{64, 192}));
    EXPECT_EQ(shape("self_attn.o_proj"), (std::vector<std::int64_t>{192, 192}));
    EXPECT_EQ(shape("mlp.gate_proj"), (std::vector<std::int64_t>{512, 192}));
    EXPECT_EQ(shape("mlp.up_proj"), (std::vector<std::int64_t>{512, 192}));
    EXPECT_EQ(shape("mlp.down_proj"), (std::vector<std::int64_t>{192, 512}));
    EXPECT_EQ(shape("input_layernorm"), (std::vector<std::int64_t>{192}));
    EXPECT_EQ(shape("post_attention_layernorm"), (std::vector<std::int64_t>{192}));
  }
}

TEST(tiny_llama, its_files_are_all_weights_and_a_header) {
  const model_files model{test::tiny_llama()};
  std::size_t bytes = 0;
  for (const stored_tensor& tensor : model.tensors()) {
    EXPECT_EQ(tensor.type, dtype::bf16) << tensor.name;
    bytes += tensor.bytes.size();
  }
  const safetensors_file& file = model.files().front();
  const std::size_t header_end = std::filesystem::file_size(file.path()) - bytes;
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_GT(header_end, 8u);
  EXPECT_LT(header_end, 10'000u);
}

TEST(tiny_llama, its_weights_are_trained_numbers) {
  const model_files model{test::tiny_llama()};
  for (const stored_tensor& tensor : model.tensors()) {
    double squares = 0;
    for (std::size_t at = 0; at < tensor.bytes.size(); at += sizeof(bf16)) {
      bf16 stored;
      std::memcpy(&stored, tensor.bytes.data() + at, sizeof stored);
      const float value = widen(stored);
      ASSERT_TRUE(std::isfinite(value) && std::abs(value) < 100.0f) << tensor.name << " at " << at;
      squares += static_cast<double>(value) * value;
    }
    EXPECT_GT(squares, 0) << tensor.name;
  }
}

}  // namespace
}  // namespace reprise
