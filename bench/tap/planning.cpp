#include "bench/tap/planning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "reprise/base/clock.hpp"
#include "reprise/tap/plan.hpp"

namespace reprise::bench {

namespace {

constexpr int planning_warm_ups = 10;
constexpr std::int64_t planned_rows = 512;
constexpr std::int64_t rows_of_a_request = 8;
constexpr std::size_t most_planned_runs = 1024;
// Of positions alone: nothing of the ring is there.
constexpr std::uint64_t planned_ring_bytes = std::uint64_t{1} << 40;

constexpr std::array<std::string_view, 12> point_kinds{
    "resid_pre", "attn_in", "q",        "k",      "v",       "attn_out",
    "resid_mid", "mlp_in",  "mlp_gate", "mlp_up", "mlp_out", "resid_post"};

std::vector<tapped_point> points_of(row_mode rows) {
  std::vector<tapped_point> all;
  for (std::size_t i = 0; i < planned_points; ++i) {
    tapped_point one;
    one.id = i;
    one.kind = point_kinds[i % point_kinds.size()];
    one.layer = static_cast<int>(i / point_kinds.size());
    one.rows = rows;
    one.type = dtype::bf16;
    one.source_rows = planned_rows;
    one.width = one.kind == "k" || one.kind == "v" ? 1024 : 4096;
    one.row_bytes = 2 * static_cast<std::uint64_t>(one.width);
    all.push_back(one);
  }
  return all;
}

std::vector<request_rows> requests_of_a_step() {
  std::vector<request_rows> all;
  for (std::size_t i = 0; i < planned_requests; ++i) {
    const auto n = static_cast<std::int64_t>(i);
    all.push_back({100 + i, n * (rows_of_a_request + 1), rows_of_a_request, n, 17 * n});
  }
  return all;
}

struct expected_plan {
  std::int64_t rows = 0;  // of each point
  std::size_t pieces = 0;
  std::uint64_t runs = 0;
};

// By counting: each request's rows are a run of their own, and padding lies behind each.
expected_plan expected_of(row_mode rows) {
  constexpr auto requests = static_cast<std::int64_t>(planned_requests);
  switch (rows.what()) {
    case row_mode::kind::last: return {requests, planned_requests, planned_requests};
    case row_mode::kind::real:
      return {requests * rows_of_a_request, planned_requests, planned_requests};
    default: return {planned_rows, 2 * planned_requests, 1};
  }
}

bool is_right(const step_plan& plan, std::span<const std::uint64_t> words,
              std::span<const tapped_point> points, const ring_account& account,
              const expected_plan& expected, std::uint64_t replay) {
  const auto publications = plan.publications();
  if (publications.size() != points.size()) return false;
  std::uint64_t position = account.head();
  for (std::size_t i = 0; i < publications.size(); ++i) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(expected.rows) * points[i].row_bytes;
    const auto says = words.subspan(i * descriptor_words, descriptor_words);
    const std::uint64_t table = says[descriptor::table];
    const bool as_said = says[descriptor::position] == position % says[descriptor::capacity] &&
                         says[descriptor::most] == bytes && says[descriptor::replay] == replay &&
                         table + 1 < words.size() && words[table] == expected.runs &&
                         publications[i].bytes == bytes &&
                         plan.pieces_of(publications[i]).size() == expected.pieces;
    if (!as_said) return false;
    position += padded(bytes);
  }
  return true;
}

planning_figure measure_mode(std::string what, row_mode rows, int repeats) {
  const std::vector<tapped_point> points = points_of(rows);
  const std::vector<request_rows> requests = requests_of_a_step();
  const expected_plan expected = expected_of(rows);
  ring_account account{planned_ring_bytes, 2 * planned_points};
  std::vector<std::uint64_t> words(planned_points * (descriptor_words + 1) + 2 * most_planned_runs);
  step_plan plan;
  plan.reserve(planned_points, most_planned_runs);
  planning_figure made;
  made.what = std::move(what);
  std::vector<double> us;
  std::vector<double> floor_us;
  for (int i = 0; i < planning_warm_ups + repeats; ++i) {
    const auto replay = static_cast<std::uint64_t>(i + 1);
    const double began = now_us();
    plan.make(points, requests, false);
    plan.place(account);
    plan.write(words, points.size(), account, replay);
    const double done = now_us();
    ++made.plans;
    made.right += is_right(plan, words, points, account, expected, replay) ? 1 : 0;
    account.promise(plan.bytes(), plan.publications().size());
    account.give_back(plan.bytes(), plan.publications().size());
    made.words = plan.words(points.size());
    const double filling = now_us();
    std::ranges::fill(std::span{words}.first(made.words), replay);
    const double filled = now_us();
    if (i < planning_warm_ups) continue;
    us.push_back(done - began);
    floor_us.push_back(filled - filling);
  }
  made.us = spread_of(std::move(us));
  made.floor_us = spread_of(std::move(floor_us));
  return made;
}

}  // namespace

std::string planning_figure::failure() const {
  if (right == plans) return {};
  return fmt::format(
      "planning, {}: of {} plans {} have the publications, positions and row tables that they must "
      "have; its figure is of something else, so mend that before reading it",
      what, plans, right);
}

std::vector<planning_figure> measure_planning(int repeats) {
  return {measure_mode("last rows", row_mode::last(), repeats),
          measure_mode("all rows", row_mode::all(), repeats),
          measure_mode("rows of requests", row_mode::real(), repeats)};
}

}  // namespace reprise::bench
