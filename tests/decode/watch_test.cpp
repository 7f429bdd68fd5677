// Records of a batch in which requests come, go and are padded are those of another process, which
// runs one request at a time, eager and unpadded, with nothing captured; bit for bit.
#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "reprise/tap/monitor.hpp"
#include "tests/decode/rows_alone.hpp"
#include "tests/decode/support.hpp"
#include "tests/support/observe.hpp"

namespace reprise {
namespace {

using test::row_map;
using test::row_name;

void keep_rows(const tap_record& one, row_map& into) {
  const std::size_t row = one.bytes.size() / static_cast<std::size_t>(one.rows);
  for (std::int64_t i = 0; i < one.rows; ++i) {
    const auto bytes = one.bytes.subspan(static_cast<std::size_t>(i) * row, row);
    const bool is_new = into.emplace(row_name{one.request, one.layer, one.first_row + i},
                                     std::vector<std::byte>(bytes.begin(), bytes.end()))
                            .second;
    EXPECT_TRUE(is_new) << "request " << one.request << " layer " << one.layer;
  }
}

class watched_decode : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(devices, watched_decode,
                         ::testing::ValuesIn(test::devices_for_long_tests()),
                         [](const auto& p) { return test::test_name(p.param); });

// Five requests at sizes 1, 2 and 4: four start, and one when they are done; each makes five decode
// steps behind its prefill.
TEST_P(watched_decode, has_the_rows_of_each_request_alone) {
  const std::vector<std::string>& prompts = test::watched_prompts();
  const row_map& expected = test::rows_alone(test::alone_model::shipped, GetParam());
  ASSERT_FALSE(expected.empty());
  for (const bool last : {false, true}) {
    const device opened = test::open_for_test(GetParam(), 1);
    row_map got;
    // A decode step of four takes 24,704 bytes: each second one crosses the end.
    monitor eye{opened, {.ring_bytes = 40'000, .staging_bytes = 40'000, .markers = true}};
    eye.watch({"*", last ? row_mode::last() : row_mode::real()});
    eye.deliver_to([&](const tap_record& one) { keep_rows(one, got); });
    decode::decode_options o = test::tiny_options(prompts, test::watched_tokens);
    o.batch_sizes = {1, 2, 4};
    const decode::decode_report report = decode::run_decode(
        opened, o, [](std::size_t, const decode::request&) {}, eye.observer(),
        [&](std::span<const request_rows> rows) { eye.plan_step(rows); });
    EXPECT_EQ(report.failure(), "");
    EXPECT_EQ(report.counts.captured, 2U);
    EXPECT_EQ(report.counts.replayed, 8U);
    EXPECT_EQ(report.counts.eager, 5U);
    eye.flush();
    const tap_counts counts = eye.counts();
    EXPECT_EQ(counts.lost + counts.dropped + counts.mislabelled, 0U);
    EXPECT_EQ(counts.planned, 15U * 8);
    EXPECT_EQ(counts.planned, counts.published);
    row_map wanted = expected;
    if (last) {
      // Of a prompt its last row alone, of each later step the one.
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        const auto prompt = static_cast<std::int64_t>(prompts[i].size());
        std::erase_if(wanted, [&](const auto& row) {
          const auto& [request, layer, token] = row.first;
          return request == i && token < prompt - 1;
        });
      }
    }
    EXPECT_EQ(got.size(), wanted.size());
    EXPECT_TRUE(got == wanted);
  }
}

}  // namespace
}  // namespace reprise
