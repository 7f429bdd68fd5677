// Options that make no run are one line, which names the option and what would do.
#include "workloads/train/options.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/observe.hpp"

namespace reprise {
namespace {

using train::graphed_parts;
using train::train_options;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

TEST(train_options_test, out_of_range_are_one_line_that_names_them) {
  using change = std::function<void(train_options&)>;
  const std::vector<std::pair<std::string, change>> wrong{
      {"--epochs 0: ", [](auto& o) { o.epochs = 0; }},
      {"--batch 1: give a whole number from 2", [](auto& o) { o.batch = 1; }},
      {"--accumulate 0: ", [](auto& o) { o.accumulate = 0; }},
      {"--subset 1: ", [](auto& o) { o.subset = 1; }},
      {"--subset -1: ", [](auto& o) { o.subset = -1; }},
      {"--subset 60001: ", [](auto& o) { o.subset = 60001; }},
      {"--unlabelled-every 1: ", [](auto& o) { o.unlabelled_every = 1; }},
      {"--unlabelled-every -1: ", [](auto& o) { o.unlabelled_every = -1; }},
      {"--hidden 0: ", [](auto& o) { o.hidden = 0; }},
      {"--width 0: ", [](auto& o) { o.width = 0; }},
      {"--mask-hidden 0: ", [](auto& o) { o.mask_hidden = 0; }},
      {"--dropout 1: ", [](auto& o) { o.dropout = 1; }},
      {"--dropout -0.5: ", [](auto& o) { o.dropout = -0.5F; }},
      {"--mask-weight -1: ", [](auto& o) { o.mask_weight = -1; }},
      {"--learning-rate 0: ", [](auto& o) { o.learning_rate = 0; }},
      {"--learning-rate nan: ", [](auto& o) { o.learning_rate = nan; }},
      {"--clip -1: ", [](auto& o) { o.clip = -1; }},
      {"--clip nan: ", [](auto& o) { o.clip = nan; }},
      {"--ema 1: ", [](auto& o) { o.ema = 1; }},
      {"--loss-scale 0: ",
       [](auto& o) {
         o.scale = {false, 0};
       }},
      {"--loss-scale inf: ",
       [](auto& o) {
         o.scale = {false, std::numeric_limits<float>::infinity()};
       }},
      {"--verify ",
       [](auto& o) {
         o.verify = true;
         o.graphed = {false, false, false};
       }},
  };
  for (const auto& [begins, apply] : wrong) {
    train_options o;
    apply(o);
    const std::string told = test::message_of<usage_error>([&] { check(o); });
    EXPECT_TRUE(told.starts_with(begins)) << begins << "\n" << told;
    EXPECT_EQ(std::ranges::count(told, '\n'), 0) << told;
  }
  EXPECT_NO_THROW(train::check({}));
}

TEST(train_options_test, parts_are_read_as_they_are_written) {
  EXPECT_EQ(train::parts_from("none"), (graphed_parts{false, false, false}));
  EXPECT_EQ(train::parts_from("heads"), (graphed_parts{false, true, false}));
  for (const std::string text : {"network,heads,loss", "network", "network,loss", "none"}) {
    EXPECT_EQ(text_of(train::parts_from(text)), text);
  }
  EXPECT_EQ(text_of(graphed_parts{}), "network,heads,loss") << "all of them by default";
  for (const std::string text : {"", "head", "network,", "network,none", "all"}) {
    const std::string told = test::message_of<usage_error>([&] { train::parts_from(text); });
    EXPECT_TRUE(told.starts_with("--graphed: \"")) << told;
    EXPECT_TRUE(test::has(told, "none")) << told;
  }
}

TEST(train_options_test, a_loss_scale_is_a_number_or_dynamic) {
  EXPECT_TRUE(train::scaling_from("dynamic").dynamic);
  EXPECT_FALSE(train::scaling_from("1024").dynamic);
  EXPECT_EQ(train::scaling_from("0.5").scale, 0.5F);
  EXPECT_EQ(text_of(train::scaling_from("1024")), "1024");
  EXPECT_EQ(text_of(train::scaling{}), "dynamic");
  for (const std::string text : {"", "much", "1024x", "1e99"}) {
    EXPECT_TRUE(test::has(test::message_of<usage_error>([&] { train::scaling_from(text); }),
                          "--loss-scale"));
  }
}

}  // namespace
}  // namespace reprise
