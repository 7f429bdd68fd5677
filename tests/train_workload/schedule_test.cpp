// Which images come when, in numbers worked out by hand.
#include "workloads/train/schedule.hpp"

#include <gtest/gtest.h>

namespace reprise {
namespace {

using train::epoch;
using train::epoch_of;
using train::micro_batch;
using train::train_options;
using train::window;

train_options asked(std::int64_t batch, std::int64_t accumulate) {
  train_options o;
  o.batch = batch;
  o.accumulate = accumulate;
  return o;
}

TEST(an_epoch, has_windows_of_micro_batches_and_what_is_left_at_its_end) {
  EXPECT_EQ(epoch_of(asked(4, 2), 22),
            (epoch{{{0, 4}, {4, 4}}, {{8, 4}, {12, 4}}, {{16, 4}, {20, 2}}}));
  EXPECT_EQ(epoch_of(asked(4, 2), 12), (epoch{{{0, 4}, {4, 4}}, {{8, 4}}}));
  EXPECT_EQ(epoch_of(asked(8, 3), 5), (epoch{{{0, 5}}}));
}

TEST(an_epoch, leaves_out_a_last_image_that_is_alone) {
  EXPECT_EQ(epoch_of(asked(4, 1), 9), (epoch{{{0, 4}}, {{4, 4}}}));
  EXPECT_EQ(epoch_of(asked(4, 2), 9), (epoch{{{0, 4}, {4, 4}}}));
}

TEST(an_epoch, drops_the_labels_of_every_nth_micro_batch) {
  train_options o = asked(2, 2);
  o.unlabelled_every = 3;
  EXPECT_EQ(
      epoch_of(o, 14),
      (epoch{{{0, 2}, {2, 2}}, {{4, 2, false}, {6, 2}}, {{8, 2}, {10, 2, false}}, {{12, 2}}}));
}

TEST(an_epoch, of_the_whole_data_set_has_469_micro_batches_of_128) {
  const epoch all = epoch_of(asked(128, 2), 60000);
  ASSERT_EQ(all.size(), 235U);
  EXPECT_EQ(all.back(), (window{{59904, 96}}));
}

TEST(a_rate, goes_down_in_a_line_to_a_tenth) {
  train_options o;
  o.learning_rate = 0.5F;
  EXPECT_EQ(train::rate_at(o, 0, 10), 0.5F);
  EXPECT_FLOAT_EQ(train::rate_at(o, 5, 10), 0.275F);
  EXPECT_FLOAT_EQ(train::rate_at(o, 9, 10), 0.095F);
}

}  // namespace
}  // namespace reprise
