// What a step of training does: gradients of a window are the mean of its micro-batches', and a
// text that is easy is learnt.
#include "workloads/memory/training.hpp"

#include <cmath>

#include "reprise/device/enqueue.hpp"
#include "tests/memory/support.hpp"

namespace reprise {
namespace {

using memory::byte_batch;
using memory::memory_options;
using memory::training;

std::vector<float> gradients_of(training& trained) {
  const view<float> from = trained.parameters().gradients();
  std::vector<float> values(from.size());
  copy(trained.runs_on(), read<float>{from},
       write<float>{view<float>{values.data(), values.size()}});
  trained.runs_on().synchronize();
  return values;
}

std::vector<float> gradients_of_window(device_ref on, memory_options o,
                                       const std::vector<byte_batch>& window) {
  o.accumulate = static_cast<std::int64_t>(window.size());
  training trained{on, o, true};
  trained.step(window);
  return gradients_of(trained);
}

TEST(a_window, has_the_mean_of_the_gradients_of_its_micro_batches) {
  const device on = open_device("cpu", {.threads = 1});
  memory_options o = test::small_options({});
  o.conflict = slots{2};
  const auto drawn = [&](std::uint64_t number) {
    return memory::draw_batch(test::few_lines, o.seed, number, {o.batch, o.context});
  };
  const std::vector<float> first = gradients_of_window(on, o, {drawn(0)});
  const std::vector<float> second = gradients_of_window(on, o, {drawn(1)});
  const std::vector<float> both = gradients_of_window(on, o, {drawn(0), drawn(1)});
  double largest = 0;
  for (std::size_t i = 0; i < both.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(both[i])));
    ASSERT_NEAR(both[i], (first[i] + second[i]) / 2, 1e-6F + 1e-4F * std::abs(both[i])) << i;
  }
  EXPECT_GT(largest, 1e-3) << "there is something to compare";
}

TEST(training_on_a_text, lowers_the_loss_until_what_comes_next_is_known) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "abcdefgh";
  const test::text_file file{text};
  memory_options o = test::small_options(file.path());
  o.steps = 60;
  o.context = 12;
  o.width = 16;
  o.learning_rate = 2e-2F;
  o.verify = false;
  o.prompt = "abc";
  o.sample = 13;
  o.temperature = 0;
  const device on = open_device("cpu", {.threads = 1});
  const memory::memory_report report = memory::run_memory(on, o);
  EXPECT_GT(report.loss_first, 5.0F) << "256 bytes are as likely";
  EXPECT_LT(report.loss_last, 0.1F);
  EXPECT_EQ(report.sample, "defghabcdefgh");
}

}  // namespace
}  // namespace reprise
