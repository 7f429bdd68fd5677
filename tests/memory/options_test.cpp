// Options that make no run are one line, which names the option and what would do; regions cut the
// network in spans of neighbours.
#include "workloads/memory/options.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/memory/support.hpp"
#include "tests/support/observe.hpp"

namespace reprise {
namespace {

using memory::memory_options;

TEST(memory_options_test, out_of_range_are_one_line_that_names_them) {
  using change = std::function<void(memory_options&)>;
  const std::vector<std::pair<std::string, change>> wrong{
      {"--steps 0: ", [](auto& o) { o.steps = 0; }},
      {"--batch 0: ", [](auto& o) { o.batch = 0; }},
      {"--context 0: ", [](auto& o) { o.context = 0; }},
      {"--layers 0: ", [](auto& o) { o.layers = 0; }},
      {"--width 0: ", [](auto& o) { o.width = 0; }},
      {"--side 0: ", [](auto& o) { o.side = 0; }},
      {"--side 5000: ", [](auto& o) { o.side = 5000; }},
      {"--writes 10: give a whole number from 1 to 9;", [](auto& o) { o.writes = 10; }},
      {"--reads 10: give a whole number from 1 to 9;", [](auto& o) { o.reads = 10; }},
      {"--key-width 0: ", [](auto& o) { o.key_width = 0; }},
      {"--chunk 0: ", [](auto& o) { o.chunk = 0; }},
      {"--chunk 4000: give a whole number from 1 to 3276;", [](auto& o) { o.chunk = 4000; }},
      {"--accumulate 0: ", [](auto& o) { o.accumulate = 0; }},
      {"--regions 0: ", [](auto& o) { o.regions = 0; }},
      {"--regions 6: give a whole number from 1 to 5;", [](auto& o) { o.regions = 6; }},
      {"--sample -1: ", [](auto& o) { o.sample = -1; }},
      {"--storage f64: give f32 or bf16", [](auto& o) { o.storage = dtype::f64; }},
      {"--learning-rate: ", [](auto& o) { o.learning_rate = 0; }},
      {"--learning-rate: ",
       [](auto& o) { o.learning_rate = std::numeric_limits<float>::quiet_NaN(); }},
      {"--temperature: ", [](auto& o) { o.temperature = -1; }},
      {"--prompt: ", [](auto& o) { o.prompt.clear(); }},
      {"--verify ", [](auto& o) { o.eager = o.verify = true; }},
      {"sdm: ",
       [](auto& o) {
         o.side = 1024;
         o.batch = 4096;
       }},
  };
  for (const auto& [begins, apply] : wrong) {
    memory_options o = test::small_options({});
    apply(o);
    const std::string told = test::message_of<usage_error>([&] { check(o); });
    EXPECT_TRUE(told.starts_with(begins)) << begins << "\n" << told;
    EXPECT_EQ(std::ranges::count(told, '\n'), 0) << told;
  }
  EXPECT_NO_THROW(check(test::small_options({})));
  EXPECT_NO_THROW(memory::check({}));
}

TEST(memory_options_test, need_no_prompt_where_nothing_is_sampled) {
  memory_options o;
  o.prompt.clear();
  o.sample = 0;
  EXPECT_NO_THROW(check(o));
}

TEST(regions, cut_the_network_in_spans_that_cover_it) {
  memory_options o;
  o.layers = 3;
  for (o.regions = 1; o.regions <= 7; ++o.regions) {
    std::int64_t next = 0;
    for (std::int64_t i = 0; i < o.regions; ++i) {
      const memory::layer_span span = span_of(o, i);
      EXPECT_EQ(span.first, next);
      const std::int64_t size = span.last - span.first;
      EXPECT_TRUE(size == 7 / o.regions || size == 7 / o.regions + 1) << size;
      next = span.last;
    }
    EXPECT_EQ(next, 7);
  }
}

}  // namespace
}  // namespace reprise
