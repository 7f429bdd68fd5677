// The scale of a loss: how it moves, the word that a backward reads, and what is refused.
#include "reprise/nn/loss_scaler.hpp"

#include <cmath>
#include <functional>
#include <optional>

#include "reprise/device/graph.hpp"
#include "tests/nn/support.hpp"

namespace reprise::test {
namespace {

std::string refusal(const std::function<void()>& of) {
  try {
    of();
  } catch (const usage_error& refused) {
    return refused.what();
  }
  return "nothing was refused";
}

class loss_scales : public on_each_device {
 protected:
  float word_of(nn::loss_scaler& scaler, float share = 1) {
    return read_back<float>(here.work, scaler.cotangent(here.work, share))[0];
  }
};

TEST_P(loss_scales, double_after_an_interval_and_halve_at_each_overflow) {
  nn::loss_scaler scaler{here.memory, here.work, {.interval = 3}};
  EXPECT_EQ(scaler.scale(), 65536.0F);
  const auto good = [&](int updates) {
    for (int i = 0; i < updates; ++i) scaler.update(true);
    return scaler.scale();
  };
  EXPECT_EQ(good(2), 65536.0F);
  EXPECT_EQ(good(1), 131072.0F);
  EXPECT_EQ(good(2), 131072.0F);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 65536.0F);
  EXPECT_EQ(good(2), 65536.0F) << "they count anew";
  scaler.update(false);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 16384.0F);
  EXPECT_EQ(good(3), 32768.0F);
}

TEST_P(loss_scales, stay_between_their_bounds) {
  nn::loss_scaler scaler{
      here.memory, here.work, {.scale = 4, .interval = 1, .least = 1.5F, .most = 12}};
  for (const float expected : {8.0F, 12.0F, 12.0F}) {
    scaler.update(true);
    EXPECT_EQ(scaler.scale(), expected);
  }
  for (const float expected : {6.0F, 3.0F, 1.5F, 1.5F}) {
    scaler.update(false);
    EXPECT_EQ(scaler.scale(), expected);
  }
}

TEST_P(loss_scales, come_to_a_backward_in_a_word_that_is_written_when_it_changes) {
  nn::loss_scaler scaler{here.memory, here.work, {.scale = 1024, .interval = 2}};
  const auto written = [&](float share) {
    const std::uint64_t before = (*here.calls)[seam_call::fill];
    const float word = word_of(scaler, share);
    EXPECT_EQ(word, scaler.scale() * share);
    return (*here.calls)[seam_call::fill] - before;
  };
  EXPECT_EQ(written(0.25F), 1U);
  EXPECT_EQ(written(0.25F), 0U);
  scaler.update(true);
  EXPECT_EQ(written(0.25F), 0U) << "the scale is the same";
  scaler.update(true);
  EXPECT_EQ(written(0.25F), 1U);
  EXPECT_EQ(written(0.5F), 1U) << "another share";
  scaler.update(false);
  EXPECT_EQ(written(1.0F), 0U) << "another scale, and the same product";
}

TEST_P(loss_scales, go_on_from_what_was_stored) {
  nn::loss_scaler first{here.memory, here.work, {.interval = 3}};
  first.update(false);
  first.update(true);
  first.update(true);
  nn::loss_scaler second{here.memory, here.work, {.interval = 3}};
  EXPECT_EQ(word_of(second), 65536.0F);
  second.restore(first.state());
  EXPECT_EQ(second.state(), first.state());
  EXPECT_EQ(word_of(second), 32768.0F);
  first.update(true);
  second.update(true);
  EXPECT_EQ(second.scale(), 65536.0F);
  EXPECT_EQ(second.state(), first.state());
}

TEST_P(loss_scales, refuse_what_is_no_scale_before_they_take_memory) {
  const auto refused = [&](const nn::loss_scale_options& options) {
    const std::uint64_t taken = (*here.calls)[seam_call::allocate];
    const std::string said = refusal([&] {
      const nn::loss_scaler scaler{here.memory, here.work, options};
    });
    EXPECT_EQ((*here.calls)[seam_call::allocate], taken);
    return said;
  };
  EXPECT_EQ(
      refused({.scale = 0.5F}),
      "loss_scaler: a scale of 0.5 between 1 and 16777216; give finite ones over 0, in order");
  EXPECT_EQ(refused({.scale = 1, .least = 0}),
            "loss_scaler: a scale of 1 between 0 and 16777216; give finite ones over 0, in order");
  EXPECT_EQ(refused({.scale = 64, .most = 32}),
            "loss_scaler: a scale of 64 between 1 and 32; give finite ones over 0, in order");
  EXPECT_NE(refused({.most = INFINITY}), "nothing was refused");
  EXPECT_NE(refused({.scale = NAN}), "nothing was refused");
  EXPECT_EQ(refused({.interval = 0}), "loss_scaler: an interval of 0 updates; give 1 at least");
}

TEST_P(loss_scales, refuse_another_stream_a_capture_and_no_share) {
  nn::loss_scaler scaler{here.memory, here.work};
  const stream other{here.opened};
  EXPECT_EQ(refusal([&] { scaler.cotangent(other); }),
            "loss_scaler: its word is written on the stream that it was made with; give that one");
  EXPECT_EQ(refusal([&] { scaler.cotangent(here.work, 0); }),
            "loss_scaler: a share of 0 of a window; give one over 0, such as 1 of its "
            "micro-batches");
  EXPECT_NE(refusal([&] { scaler.cotangent(here.work, NAN); }), "nothing was refused");
  std::string inside;
  const graph nothing = capture(here.work, [&](stream_ref on) {
    inside = refusal([&] { scaler.cotangent(on); });
    empty(on, "here");
  });
  EXPECT_EQ(inside,
            "loss_scaler: its word changes between launches, and a capture would keep it as it is "
            "now; ask for it before");
  EXPECT_EQ(word_of(scaler), 65536.0F);
}

TEST_P(loss_scales, refuse_what_was_stored_under_other_options) {
  nn::loss_scaler scaler{here.memory, here.work, {.interval = 3, .most = 65536}};
  EXPECT_EQ(refusal([&] {
              scaler.restore({131072.0F, 0});
            }),
            "loss_scaler: a scale of 131072 is stored, and is between 1 and 65536 here; give one "
            "of those");
  EXPECT_EQ(refusal([&] {
              scaler.restore({1024.0F, 3});
            }),
            "loss_scaler: 3 good updates are stored, and the scale doubles after 3; give fewer");
  EXPECT_NE(refusal([&] { scaler.restore({1024.0F, -1}); }), "nothing was refused");
  EXPECT_EQ(scaler.state(), (nn::loss_scale{65536.0F, 0}));
}

INSTANTIATE_TEST_SUITE_P(devices, loss_scales, testing::ValuesIn(devices_under_test()),
                         name_of_device);

}  // namespace
}  // namespace reprise::test
