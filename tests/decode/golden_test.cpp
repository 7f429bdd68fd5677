// The trained model against values that another implementation computed (models/tiny-llama).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "reprise/replay/cache.hpp"
#include "tests/decode/support.hpp"

namespace reprise {
namespace {

nlohmann::json golden_cases() {
  std::ifstream in{test::tiny_llama() / "golden.json"};
  return nlohmann::json::parse(in).at("cases");
}

// Norms of every row of the residual stream entering each layer.
class norm_reader : public mark_observer {
 public:
  void on_mark(step_scope& run, point where, const tensor_ref& what) override {
    ASSERT_EQ(where.kind, "resid_pre");
    const auto rows = static_cast<std::size_t>(what.shape[0]);
    const auto width = static_cast<std::size_t>(what.shape[1]);
    std::vector<float> host(rows * width);
    copy(run, read<float>{elements_of<const float>(what)},
         write<float>{view<float>{host.data(), host.size()}});
    stream_ref{run}.synchronize();
    std::vector<double>& norms = by_layer[where.layer];
    norms.clear();
    for (std::size_t row = 0; row < rows; ++row) {
      double sum = 0;
      for (std::size_t i = 0; i < width; ++i) {
        sum += static_cast<double>(host[row * width + i]) * host[row * width + i];
      }
      norms.push_back(std::sqrt(sum));
    }
  }

  std::map<int, std::vector<double>> by_layer;
};

class golden_test
    : public ::testing::TestWithParam<std::tuple<std::string, decode::weight_storage>> {
 protected:
  std::string spec() const { return std::get<0>(GetParam()); }
  decode::decode_options options(const std::vector<std::string>& prompts,
                                 std::int64_t tokens) const {
    decode::decode_options o = test::tiny_options(prompts, tokens);
    o.weights = std::get<1>(GetParam());
    return o;
  }
};

INSTANTIATE_TEST_SUITE_P(devices, golden_test,
                         ::testing::Combine(::testing::ValuesIn(test::plain_devices()),
                                            ::testing::Values(decode::weight_storage::as_file,
                                                              decode::weight_storage::f32)),
                         [](const auto& p) {
                           return test::test_name(std::get<0>(p.param)) +
                                  (std::get<1>(p.param) == decode::weight_storage::f32
                                       ? "_fp32"
                                       : "_as_file");
                         });

TEST_P(golden_test, each_prompt_continues_with_exactly_its_96_bytes) {
  for (const nlohmann::json& expected : golden_cases()) {
    const std::string prompt = expected.at("prompt");
    const decode::decode_report report = test::run_on(spec(), options({prompt}, 96));
    EXPECT_EQ(test::texts(report)[0], expected.at("greedy").get<std::string>()) << prompt;
    EXPECT_EQ(report.counts.captured, 1U);
    EXPECT_EQ(report.counts.replayed, 94U);
    EXPECT_EQ(report.counts.eager, 1U);
    EXPECT_EQ(report.counts.eager_reasons.at("prefill"), 1U);
    EXPECT_EQ(report.failure(), "");
  }
}

TEST_P(golden_test, residual_norms_agree_through_marks) {
  for (const nlohmann::json& expected : golden_cases()) {
    const std::string prompt = expected.at("prompt");
    const auto norms = std::make_shared<norm_reader>();
    const device opened = test::open_for_test(spec());
    const decode::decode_report report = decode::run_decode(
        opened, options({prompt}, 1), [](std::size_t, const decode::request&) {}, norms);
    EXPECT_EQ(report.failure(), "");
    ASSERT_EQ(norms->by_layer.size(), 8U);
    for (std::size_t place = 0; place < 2; ++place) {
      const nlohmann::json& row = expected.at("resid_pre_norms").at(place);
      const std::size_t position = place == 0 ? 0 : prompt.size() - 1;
      for (int layer = 0; layer < 8; ++layer) {
        const double want = row.at(static_cast<std::size_t>(layer));
        EXPECT_NEAR(norms->by_layer.at(layer).at(position), want, 1e-4 * want)
            << prompt << " layer " << layer << " position " << position;
      }
    }
  }
}

TEST_P(golden_test, logits_agree_at_the_first_and_the_last_position) {
  const device opened = test::open_for_test(spec());
  const decode::model_config config = decode::read_model_config(test::tiny_llama() / "config.json");
  stream work{opened};
  pool memory{opened, "test"};
  const decode::llama model{
      memory,
      work,
      config,
      decode::load_weights(memory, work, test::tiny_llama(), config, std::get<1>(GetParam())),
      1,
      64};
  const decode::model_step prefill = decode::prefill_step(model, false);
  replay_cache cache{opened};
  for (const nlohmann::json& expected : golden_cases()) {
    const std::vector<std::int32_t> prompt =
        decode::byte_tokens(expected.at("prompt").get<std::string>());
    for (const nlohmann::json& place : expected.at("logits")) {
      const std::size_t length = place.at("position").get<std::size_t>() + 1;
      const std::vector<std::int32_t> tokens(prompt.begin(),
                                             prompt.begin() + static_cast<std::ptrdiff_t>(length));
      std::vector<std::int32_t> positions(length);
      for (std::size_t i = 0; i < length; ++i) positions[i] = static_cast<std::int32_t>(i);
      const std::vector<std::int32_t> slots(length, 0);
      const step_result done =
          cache.run(work, prefill.body,
                    {prefill.tokens.from_host(tokens), prefill.positions.from_host(positions),
                     prefill.slots.from_host(slots)});
      std::vector<float> logits(256);
      copy(work, read<float>{done[prefill.logits].get()},
           write<float>{view<float>{logits.data(), logits.size()}});
      work.synchronize();
      for (const nlohmann::json& entry : place.at("top5")) {
        EXPECT_NEAR(logits.at(entry.at(0).get<std::size_t>()), entry.at(1).get<double>(), 1e-4);
      }
    }
  }
}

}  // namespace
}  // namespace reprise
