// Records of a batch in which requests come, go and are padded are those of separate runs, one
// request at a time, eager and unpadded, with nothing captured; bit for bit.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <utility>

#include "reprise/tap/monitor.hpp"
#include "tests/decode/support.hpp"
#include "tests/support/observe.hpp"

namespace reprise {
namespace {

// By request, layer and token: the row, as bytes.
using row_name = std::tuple<std::uint64_t, int, std::int64_t>;
using row_map = std::map<row_name, std::vector<std::byte>>;

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

// What a plain run marks, copied at once.
class plain_rows final : public mark_observer {
 public:
  void on_mark(step_scope& run, point where, const tensor_ref& what) override {
    std::vector<std::byte> bytes(what.bytes());
    copy_bytes(run, what.data, bytes.data(), bytes.size());
    const stream_ref on = run;
    on.synchronize();
    const auto rows = static_cast<std::size_t>(what.shape[0]);
    const std::size_t row = bytes.size() / rows;
    for (std::size_t i = 0; i < rows; ++i) {
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(i * row);
      all[{request, where.layer, token + static_cast<std::int64_t>(i)}] = {
          begin, begin + static_cast<std::ptrdiff_t>(row)};
    }
  }
  std::uint64_t request = 0;
  std::int64_t token = 0;
  row_map all;
};

class watched_decode : public ::testing::TestWithParam<std::string> {
 protected:
  const std::vector<std::string> prompts{"In the beginning ", "x", "And it came", "The LORD",
                                         "Blessed are the "};
  static constexpr std::int64_t tokens = 6;

  row_map alone() {
    row_map all;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const auto calls = std::make_shared<call_counts>();
      const device opened = open_device(GetParam(), {.threads = 1, .counts = calls});
      decode::decode_options o = test::tiny_options({prompts[i]}, tokens);
      o.eager = true;
      o.batch_sizes = {1};
      const auto marks = std::make_shared<plain_rows>();
      marks->request = i;
      decode::run_decode(
          opened, o, [](std::size_t, const decode::request&) {}, marks,
          [&](std::span<const request_rows> rows) { marks->token = rows[0].first_token; });
      EXPECT_EQ((*calls)[seam_call::capture] + (*calls)[seam_call::launch], 0U);
      all.merge(marks->all);
    }
    return all;
  }
};

INSTANTIATE_TEST_SUITE_P(devices, watched_decode,
                         ::testing::ValuesIn(test::devices_for_long_tests()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(watched_decode, has_the_rows_of_each_request_alone) {
  const row_map expected = alone();
  for (const bool last : {false, true}) {
    const device opened = test::open_for_test(GetParam(), 1);
    row_map got;
    monitor eye{opened, {.ring_bytes = 1U << 22, .staging_bytes = 1U << 22, .markers = true}};
    eye.watch({"*", last ? row_mode::last() : row_mode::real()});
    eye.deliver_to([&](const tap_record& one) { keep_rows(one, got); });
    decode::decode_options o = test::tiny_options(prompts, tokens);
    o.batch_sizes = {1, 2, 4};
    const decode::decode_report report = decode::run_decode(
        opened, o, [](std::size_t, const decode::request&) {}, eye.observer(),
        [&](std::span<const request_rows> rows) { eye.plan_step(rows); });
    EXPECT_EQ(report.failure(), "");
    EXPECT_GT(report.counts.replayed, 0U);
    eye.flush();
    const tap_counts counts = eye.counts();
    EXPECT_EQ(counts.lost + counts.dropped + counts.mislabelled, 0U);
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
