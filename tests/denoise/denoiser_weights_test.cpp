// Weights as files have them: each tensor where it belongs, or one line that says what is wrong.
#include "workloads/denoise/denoiser_weights.hpp"

#include <algorithm>

#include "tests/denoise/support.hpp"

namespace reprise {
namespace {

using denoise::denoiser_weights;

class denoiser_weights_test : public ::testing::Test {
 protected:
  std::string refused() {
    try {
      load();
    } catch (const usage_error& wrong) {
      return wrong.what();
    }
    ADD_FAILURE() << "nothing was refused";
    return {};
  }
  std::unique_ptr<denoiser_weights> load() {
    return std::make_unique<denoiser_weights>(
        memory, work, model.folder(),
        denoise::read_denoiser_config(model.folder() / "config.json"));
  }
  std::vector<float> values(const parameter& of) {
    std::vector<float> all(of.value.shape.count());
    copy(work, read<float>{elements_of<float>(of.value)},
         write<float>{view<float>{all.data(), all.size()}});
    work.synchronize();
    return all;
  }
  void store(const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& tensors) {
    test::write_safetensors(model.folder() / "model.safetensors", tensors);
  }

  test::small_model model;
  device opened = test::open_for_test("cpu", 1);
  stream work{opened};
  pool memory{opened, "weights"};
};

TEST_F(denoiser_weights_test, a_missing_or_unknown_or_misshapen_tensor_is_named) {
  auto tensors = test::small_tensors();
  tensors.pop_back();
  store(tensors);
  EXPECT_NE(refused().find("output.bias"), std::string::npos);

  tensors = test::small_tensors();
  tensors.push_back({"blocks.2.norm.bias", {16}});
  store(tensors);
  EXPECT_NE(refused().find("blocks.2.norm.bias"), std::string::npos);

  tensors = test::small_tensors();
  tensors[0].second = {20, 16};
  store(tensors);
  EXPECT_NE(refused().find("input.weight"), std::string::npos);
  EXPECT_NE(refused().find("[20, 16]"), std::string::npos);
}

TEST_F(denoiser_weights_test, a_folder_without_a_file_is_refused) {
  std::filesystem::remove(model.folder() / "model.safetensors");
  EXPECT_NE(refused().find("model.safetensors"), std::string::npos);
}

TEST_F(denoiser_weights_test, a_move_gives_every_weight_another_address_and_version_and_no_value) {
  const auto weights = load();
  signature declared{"uses"};
  weights->declare(declared);
  EXPECT_EQ(declared.facts().size(), 2 * test::small_tensors().size()) << "address and version";
  const auto facts = [&] {
    std::vector<std::uint64_t> all;
    for (const declared_word& fact : declared.fact_words()) all.push_back(fact.now());
    return all;
  };
  const auto before = facts();
  const auto classes = values(weights->classes);
  const std::size_t held = memory.used();
  weights->move(work);
  const auto after = facts();
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_NE(before[i], after[i]) << i;
  EXPECT_EQ(values(weights->classes), classes);
  EXPECT_EQ(memory.used(), held);
}

}  // namespace
}  // namespace reprise
