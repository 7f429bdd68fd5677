#include "bench/sdm/repeated_step.hpp"

#include <utility>

#include "bench/sdm/digest.hpp"
#include "reprise/base/clock.hpp"

namespace reprise::bench {

namespace {

constexpr int checked_runs = 3;  // recorded, and then replayed

}  // namespace

repeated_step::repeated_step(stream_ref stream, signature declared,
                             std::function<void(step_scope&)> body, std::function<void()> begin)
    : stream_{stream},
      what_{std::move(declared), std::move(body)},
      begin_{std::move(begin)},
      replays_{stream.device()},
      eager_{stream.device(), {.record = false}} {}

std::uint64_t repeated_step::run_and_look(replay_cache& by) {
  if (begin_) begin_();
  for (int i = 0; i < checked_runs; ++i) by.run(stream_, what_, {});
  std::uint64_t digest = 0;
  for (const declared_write& one : what_.declared().writes()) {
    digest = digest_of(stream_, one.where, digest);
  }
  return digest;
}

void repeated_step::check() {
  const std::uint64_t expected = run_and_look(eager_);
  eager_runs_ += checked_runs;
  equal_ = equal_ && run_and_look(replays_) == expected;
  runs_ += checked_runs;
}

double repeated_step::time(int in_a_row) {
  stream_.synchronize();
  const double began = now_us();
  for (int i = 0; i < in_a_row; ++i) replays_.run(stream_, what_, {});
  stream_.synchronize();
  const double us = now_us() - began;
  runs_ += static_cast<std::uint64_t>(in_a_row);
  return us / in_a_row;
}

sdm_step_counts repeated_step::counts() const {
  return {what_.name(), runs_, eager_runs_, replays_.counts(), eager_.counts(), equal_};
}

}  // namespace reprise::bench
