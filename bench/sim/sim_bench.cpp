#include "bench/sim/sim_bench.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/device/memory.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/ops/swiglu.hpp"
#include "reprise/platform/explore.hpp"
#include "reprise/replay/cache.hpp"
#include "reprise/replay/step.hpp"

namespace reprise::bench {

namespace {

constexpr std::size_t elements = 16;
constexpr std::size_t streams = 4;
constexpr int recorded_kernels = 20;
constexpr std::uint64_t rounds_between_waits = 8;

// Three numbers, each of which a kernel makes of the others.
struct place {
  place(pool& memory, stream_ref on)
      : a{memory, elements, on}, b{memory, elements, on}, c{memory, elements, on} {
    fill(on, write<float>{a}, 1.0f);
    fill(on, write<float>{b}, 2.0f);
  }
  void work(stream_ref on) const { launch(on, swiglu<float>, read(a), read(b), write(c)); }

  buffer<float> a, b, c;
};

// Twenty kernels, one behind the other, that are recorded once and replayed.
class recorded_row {
 public:
  explicit recorded_row(const place& on)
      : out_{declared_.out<float>("y")},
        what_{declared_, [this, &on](step_scope& run) {
                const view<float> y = run.make(out_, {elements});
                for (int i = 0; i < recorded_kernels; ++i) {
                  launch(run, swiglu<float>, read(on.a), read(on.b), write<float>{y});
                }
              }} {}
  void run(replay_cache& cache, stream_ref on) const { cache.run(on, what_, {}); }

 private:
  signature declared_{"row"};
  output<float> out_;
  step what_;
};

// A round is 12 eager operations and 20 of a replay.
void run_rounds(device_ref dev, std::uint64_t rounds) {
  std::vector<stream> on;
  for (std::size_t i = 0; i < streams; ++i) on.emplace_back(dev);
  pool memory{dev, "bench"};
  std::vector<place> places;
  for (const stream& s : on) places.emplace_back(memory, s);
  const place recorded{memory, on[0]};
  const recorded_row row{recorded};
  replay_cache cache{dev, {}};
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < streams; ++i) {
      for (int k = 0; k < 3; ++k) places[i].work(on[i]);
    }
    row.run(cache, on[0]);
    if (round % rounds_between_waits != 0) continue;
    for (const stream& s : on) s.synchronize();
  }
  for (const stream& s : on) s.synchronize();
}

}  // namespace

std::string sim_bench_report::failure() const {
  if (findings == 0) return {};
  return fmt::format("{} seeds had a finding in a program that has no fault", findings);
}

sim_bench_report run_sim_bench(const sim_bench_options& options, const progress& tell) {
  if (options.operations == 0 || options.seeds == 0) {
    throw usage_error{"bench sim: operations and seeds are counts; give at least 1 of each"};
  }
  const std::uint64_t rounds = options.operations / (streams * 3 + recorded_kernels) + 1;
  sim_bench_report report;
  std::vector<double> watched;
  std::vector<double> unwatched;
  for (std::uint64_t seed = 1; seed <= options.seeds; ++seed) {
    tell("sim", seed - 1, options.seeds);
    for (const bool watches : {true, false}) {
      explore_options how;
      how.first_seed = seed;
      how.watches_memory = watches;
      how.shortening_seeds = 0;
      const auto began = std::chrono::steady_clock::now();
      const exploration seen = explore(
          1, [&](device_ref dev) { run_rounds(dev, rounds); }, how);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
      report.findings += seen.failures.size();
      (watches ? report.watched : report.unwatched).operations += seen.operations;
      (watches ? watched : unwatched)
          .push_back(static_cast<double>(seen.operations) / took.count());
    }
  }
  report.watched.operations_per_second = spread_of(std::move(watched));
  report.unwatched.operations_per_second = spread_of(std::move(unwatched));
  return report;
}

}  // namespace reprise::bench
