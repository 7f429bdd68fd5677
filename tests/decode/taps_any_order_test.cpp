// Records of continuous batching, whatever the order of works: requests arrive, leave, change
// places and are padded, packed or batched, through a ring that wraps, and each row has the bits
// that a process of its own got for that request alone, eagerly, unpadded, with no tap and no
// capture.
//
// REPRISE_SIM_SEEDS says how many seeds run, at most 500; by default a few.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <tuple>
#include <utility>

#include "reprise/tap/monitor.hpp"
#include "tests/decode/drawn_batches.hpp"
#include "tests/decode/rows_alone.hpp"
#include "tests/decode/support.hpp"

namespace reprise {
namespace {

using test::drawn_run;
using test::drawn_step;

std::uint64_t seeds_to_run() {
  const char* const wanted = std::getenv("REPRISE_SIM_SEEDS");
  return wanted == nullptr ? 40 : std::min<std::uint64_t>(std::strtoull(wanted, nullptr, 10), 500);
}

// A record's name: step, layer, request and first token.
using record_name = std::tuple<std::uint64_t, int, std::uint64_t, std::int64_t>;

struct kept_rows {
  std::int64_t rows = 0, place = 0;
  std::vector<std::byte> bytes;
};
using record_map = std::map<record_name, kept_rows>;

// How one run is watched.
struct watching {
  row_mode mode;
  monitor_options options;
  std::uint64_t flushes_in = 0;  // a flush after each step in so many; 0: none but the last
  bool awaits = false;           // the records of each request that leaves
};

watching drawn_watching(std::uint64_t seed, const drawn_run& drawn) {
  std::mt19937_64 dice{seed * 1'000'003};
  const std::array modes{row_mode::real(), row_mode::last(), row_mode::all(),
                         row_mode::chunked(test::batch_places)};
  // What is prefilled alone is no equal chunks.
  const bool chunks = drawn.layout == test::batch_layout::batched && drawn.eager == 0;
  watching made{modes[dice() % (chunks ? 4 : 3)], {}};
  monitor_options& o = made.options;
  const auto layers = static_cast<std::size_t>(test::small_config().layers);
  const std::size_t row = static_cast<std::size_t>(test::small_config().width) * sizeof(float);
  // A step and something more: bytes and slots end the ring at other places.
  const std::size_t step = layers * (test::most_batch_rows * row + 16);
  o.ring_bytes = step + 16 * (dice() % (step / 16));
  o.staging_bytes = step + 16 * (dice() % 64);
  o.slots = layers + dice() % 5;
  o.flights = 1 + dice() % 6;
  o.most_points = 8;
  o.most_runs = 64;
  o.thread = dice() % 2 == 0;
  o.in_line = dice() % 4 == 0;
  o.drain_by =
      std::array{drain_way::measured, drain_way::copy_engine, drain_way::kernel}[dice() % 3];
  o.drop_when_full = dice() % 3 == 0;
  o.markers = true;
  made.flushes_in = dice() % 4;
  made.awaits = dice() % 2 == 0;
  return made;
}

// What should have been taken, and what was.
class watched_run {
 public:
  watched_run(const drawn_run& drawn, const watching& how) : drawn_{drawn}, how_{how} {}

  void run_on(device_ref device) {
    const decode::model_config config = test::small_config();
    const auto& texts = test::small_texts();
    const stream work{device};
    pool memory{device, "watched"};
    const decode::llama model{
        memory,
        work,
        config,
        decode::random_weights(memory, work, config, decode::weight_storage::f32, test::small_seed),
        static_cast<std::int64_t>(texts.size()),
        config.context};
    const decode::model_step prefill = decode::prefill_step(model, false);
    const decode::model_step decode = decode::decode_step(model, false);
    monitor eye{device, how_.options};
    eye.watch({"resid_pre:*", how_.mode});
    eye.deliver_to([this](const tap_record& one) { keep(one); });
    replay_cache cache{device};
    cache.observe(eye.observer());
    std::uint64_t at = 0;
    for (const drawn_step& one : drawn_.steps) {
      const decode::model_step& step = one.prefill ? prefill : decode;
      eye.plan_step(one.requests);
      cache.run(work, step.body,
                {step.tokens.from_host(one.tokens), step.positions.from_host(one.positions),
                 step.slots.from_host(one.slots)});
      ++at;
      for (const std::uint64_t request : one.left) {
        if (!how_.awaits) continue;
        eye.await_request(request);
        expect_here(at, request);
      }
      if (how_.flushes_in == 0 || at % how_.flushes_in != 0) continue;
      eye.flush();
      expect_here(at);
    }
    eye.flush();
    eye.stop();
    work.synchronize();
    counts_ = eye.counts();
    steps_ = cache.counts();
  }

  void expect_right(const test::row_map& alone) {
    EXPECT_EQ(steps_.captured, drawn_.captured);
    EXPECT_EQ(steps_.replayed, drawn_.replayed);
    EXPECT_EQ(steps_.eager, drawn_.eager);
    EXPECT_EQ(steps_.eager_reasons["prefill"], drawn_.eager);
    const auto layers = static_cast<std::uint64_t>(test::small_config().layers);
    EXPECT_EQ(counts_.steps, drawn_.steps.size());
    EXPECT_EQ(counts_.planned + counts_.dropped, layers * drawn_.steps.size());
    EXPECT_EQ(counts_.published, counts_.planned);
    EXPECT_EQ(counts_.reserved_bytes, counts_.drained_bytes);
    EXPECT_EQ(counts_.lost + counts_.mislabelled + counts_.timed_out + counts_.clamped, 0U);
    EXPECT_TRUE(counts_.dropped == 0 || how_.options.drop_when_full);

    std::uint64_t dropped = 0;
    for (std::uint64_t step = 0; step < drawn_.steps.size(); ++step) {
      std::uint64_t points = 0;  // of this step, that were taken
      for (std::uint64_t layer = 0; layer < layers; ++layer) {
        points += expect_point(step, static_cast<int>(layer), alone) ? 1 : 0;
      }
      dropped += layers - points;
      const bool whole = points == 0 || points == layers;
      EXPECT_TRUE(whole || drawn_.steps[step].prefill) << "step " << step;
    }
    EXPECT_EQ(dropped, counts_.dropped);
    EXPECT_TRUE(records_.empty()) << records_.size() << " records that nobody planned";
  }
  std::uint64_t dropped() const { return counts_.dropped; }
  std::uint64_t waits() const { return counts_.reserve_waits; }

 private:
  // By the drain, on whatever thread that is.
  void keep(const tap_record& one) {
    const std::lock_guard held{guard_};
    const record_name name{one.step, one.layer, one.request, one.first_row};
    const kept_rows rows{one.rows, one.place, {one.bytes.begin(), one.bytes.end()}};
    EXPECT_TRUE(records_.emplace(name, rows).second)
        << "twice: step " << one.step << " layer " << one.layer << " request " << one.request;
  }

  // All records of the first so many steps are at the sink: of one request, or of all.
  void expect_here(std::uint64_t steps, std::uint64_t of = no_request) {
    if (how_.options.drop_when_full) return;
    std::uint64_t wanted = 0;
    for (std::uint64_t step = 0; step < steps; ++step) {
      for (const request_rows& r : drawn_.steps[step].requests) {
        if (of == no_request || r.request == of) ++wanted;
      }
    }
    const std::lock_guard held{guard_};
    const auto here = std::ranges::count_if(records_, [&](const auto& one) {
      const std::uint64_t request = std::get<2>(one.first);
      return request != no_request && (of == no_request || request == of);
    });
    EXPECT_EQ(static_cast<std::uint64_t>(here),
              wanted * static_cast<std::uint64_t>(test::small_config().layers))
        << "behind step " << steps - 1 << ", of request " << of;
  }

  // The records of one point of one step: all of them, or none. Takes them out.
  bool expect_point(std::uint64_t step, int layer, const test::row_map& alone) {
    const drawn_step& of = drawn_.steps[step];
    std::size_t found = 0, wanted = 0;
    for (const request_rows& r : of.requests) {
      const bool last = how_.mode == row_mode::last();
      const std::int64_t first = r.first_token + (last ? r.count - 1 : 0);
      ++wanted;
      const auto got = records_.find({step, layer, r.request, first});
      if (got == records_.end()) continue;
      ++found;
      EXPECT_EQ(got->second.rows, last ? 1 : r.count);
      EXPECT_EQ(got->second.place, r.place_in_batch);
      std::vector<std::byte> bytes;
      for (std::int64_t i = 0; i < got->second.rows; ++i) {
        const auto& row = alone.at({r.request, layer, first + i});
        bytes.insert(bytes.end(), row.begin(), row.end());
      }
      EXPECT_TRUE(got->second.bytes == bytes) << "step " << step << " layer " << layer
                                              << " request " << r.request << " token " << first;
      records_.erase(got);
    }
    EXPECT_TRUE(found == 0 || found == wanted) << "step " << step << " layer " << layer;
    if (how_.mode == row_mode::all() && found != 0) expect_padding(of, step, layer);
    return found != 0;
  }

  // Rows of nobody, each in one record that says so.
  void expect_padding(const drawn_step& of, std::uint64_t step, int layer) {
    auto nobodys = static_cast<std::int64_t>(of.tokens.size());
    for (const request_rows& r : of.requests) nobodys -= r.count;
    for (auto at = records_.lower_bound({step, layer, no_request, 0}); at != records_.end();) {
      const auto& [in_step, in_layer, request, first] = at->first;
      if (in_step != step || in_layer != layer || request != no_request) break;
      nobodys -= at->second.rows;
      at = records_.erase(at);
    }
    EXPECT_EQ(nobodys, 0) << "step " << step << " layer " << layer;
  }

  const drawn_run& drawn_;
  const watching& how_;
  std::mutex guard_;  // of the records, while the run goes on
  record_map records_;
  tap_counts counts_;
  step_counts steps_;
};

// What the seeds together must have come to, or they say little.
struct come_to {
  std::uint64_t packed = 0, batched = 0, dropped = 0, waited = 0, prefills = 0, replayed = 0;
};

void run_seeds(const std::string& device, std::uint64_t seeds, come_to& seen) {
  const test::row_map& alone = test::rows_alone(test::alone_model::small, device);
  ASSERT_FALSE(alone.empty());
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(device + ", seed " + std::to_string(seed));
    const drawn_run drawn = test::draw_run(seed, test::small_texts());
    const watching how = drawn_watching(seed, drawn);
    watched_run run{drawn, how};
    {
      const reprise::device opened =
          test::open_for_test(device == "sim" ? "sim:seed=" + std::to_string(seed) : device, 1);
      run.run_on(opened);
    }
    seen.dropped += run.dropped();
    seen.waited += run.waits();
    run.expect_right(alone);
    (drawn.layout == test::batch_layout::packed ? seen.packed : seen.batched) += 1;
    seen.prefills += drawn.eager;
    seen.replayed += drawn.replayed;
    if (testing::Test::HasFailure()) return;
  }
}

void expect_came_to_all(const come_to& seen) {
  EXPECT_GT(seen.packed, 0U);
  EXPECT_GT(seen.batched, 0U);
  EXPECT_GT(seen.dropped, 0U);
  EXPECT_GT(seen.waited, 0U);
  EXPECT_GT(seen.prefills, 0U);
  EXPECT_GT(seen.replayed, 0U);
}

TEST(decode_taps_in_any_order, T05_have_the_rows_of_each_request_alone_under_every_seed) {
  come_to seen;
  run_seeds("sim", seeds_to_run(), seen);
  if (seeds_to_run() >= 40) expect_came_to_all(seen);
}

// Joining and leaving as the seeds draw it, 200 times.
TEST(decode_taps_in_any_order, T05_have_the_rows_of_each_request_alone_however_they_come_and_go) {
  for (const std::string& device : test::plain_devices()) {
    come_to seen;
    run_seeds(device, 200, seen);
    expect_came_to_all(seen);
  }
}

}  // namespace
}  // namespace reprise
