// What recording leaves behind, and what a recording does when it is replayed.
#include "reprise/replay/recorder.hpp"
#include "reprise/replay/input_ring.hpp"
#include "reprise/replay/stage_inputs.hpp"

#include "tests/replay/support.hpp"

namespace reprise {
namespace {

class recorder_test : public ::testing::TestWithParam<std::string> {
 protected:
  test::bench on{GetParam()};
  eager_runner eager{on.opened};
  recorder maker{on.opened, eager};
  std::vector<float> ones{1, 1, 1};
};

INSTANTIATE_TEST_SUITE_P(devices, recorder_test, ::testing::ValuesIn(test::devices_under_test()),
                         [](const auto& p) { return test::test_name(p.param); });

// The work adds to state; warm-up, capture and first replay together add once.
TEST_P(recorder_test, recording_runs_the_step_exactly_once) {
  test::adding adder{on.memory, on.work, 3};
  const step what = adder.make();
  recorded done = maker.record(on.work, what, {adder.x.from_host(ones)});
  ASSERT_TRUE(done.made.has_value());
  EXPECT_EQ(done.first.how, ran::captured);
  EXPECT_EQ(done.first.why, nullptr);
  EXPECT_EQ(test::read_back<float>(on.work, adder.total.all()), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(test::read_back(on.work, done.first[adder.sum].get()), (std::vector<float>{1, 1, 1}));
}

TEST_P(recorder_test, each_replay_reads_the_inputs_of_its_own_call) {
  test::scaling tripling{on.memory, on.work, 3.0F};
  std::vector<float> values{0, 0};
  recorded done = maker.record(on.work, tripling.what, {tripling.x.from_host(values)});
  for (int i = 1; i <= 10; ++i) {
    values = {static_cast<float>(i), static_cast<float>(-i)};
    const auto result = done.made->replay(on.work, tripling.what, {tripling.x.from_host(values)});
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->how, ran::replayed);
    EXPECT_EQ(test::read_back(on.work, (*result)[tripling.y].get()),
              (std::vector<float>{3.0F * values[0], 3.0F * values[1]}));
  }
}

TEST_P(recorder_test, a_replay_is_one_launch_and_nothing_is_allocated) {
  test::scaling tripling{on.memory, on.work, 3.0F};
  recorded done = maker.record(on.work, tripling.what, {tripling.x.from_host(ones)});
  for (int i = 0; i < 4; ++i)
    done.made->replay(on.work, tripling.what, {tripling.x.from_host(ones)});
  std::vector<std::uint64_t> before;
  for (std::size_t c = 0; c < seam_calls; ++c) {
    before.push_back((*on.calls)[static_cast<seam_call>(c)]);
  }
  const int body_runs = tripling.runs;
  on.work.synchronize();
  done.made->replay(on.work, tripling.what, {tripling.x.from_host(ones)});
  const auto since = [&](seam_call call) {
    return (*on.calls)[call] - before[static_cast<std::size_t>(call)];
  };
  EXPECT_EQ(since(seam_call::copy), 0U);
  EXPECT_EQ(since(seam_call::launch), 1U);
  EXPECT_EQ(since(seam_call::kernel), 0U);
  EXPECT_EQ(since(seam_call::event_record), 0U);
  EXPECT_EQ(since(seam_call::query), 0U);
  EXPECT_EQ(since(seam_call::allocate), 0U);
  EXPECT_EQ(since(seam_call::release), 0U);
  EXPECT_EQ(since(seam_call::capture), 0U);
  EXPECT_EQ(since(seam_call::synchronize), 1U) << "the test's own";
  EXPECT_EQ(tripling.runs, body_runs) << "a replay does not run the body";
}

TEST_P(recorder_test, a_recording_outlives_what_it_was_made_from) {
  std::optional<recording> kept;
  test::scaling tripling{on.memory, on.work, 3.0F};
  {
    eager_runner own_eager{on.opened};
    recorder own_maker{on.opened, own_eager};
    recorded done = own_maker.record(on.work, tripling.what, {tripling.x.from_host(ones)});
    kept = std::move(done.made);
  }
  const auto result = kept->replay(on.work, tripling.what, {tripling.x.from_host(ones)});
  EXPECT_EQ(test::read_back(on.work, (*result)[tripling.y].get()), (std::vector<float>{3, 3, 3}));
}

TEST_P(recorder_test, replays_on_two_streams_keep_their_order) {
  test::adding adder{on.memory, on.work, 3};
  const step what = adder.make();
  recorded done = maker.record(on.work, what, {adder.x.from_host(ones)});
  stream other{on.opened};
  const std::uint64_t waits = (*on.calls)[seam_call::event_wait];
  for (int i = 0; i < 6; ++i) {
    const stream& s = i % 2 == 0 ? other : on.work;
    ASSERT_TRUE(done.made->replay(s, what, {adder.x.from_host(ones)}).has_value());
  }
  EXPECT_EQ((*on.calls)[seam_call::event_wait] - waits, 6U) << "one wait per change of stream";
  EXPECT_EQ(test::read_back<float>(on.work, adder.total.all()), (std::vector<float>{7, 7, 7}));
}

TEST_P(recorder_test, a_moved_weight_is_refused_and_the_terms_say_why) {
  test::scaling scaled{on.memory, on.work, 3.0F};
  recorded done = maker.record(on.work, scaled.what, {scaled.x.from_host(ones)});
  scaled.move(on.memory, on.work, 5.0F);
  EXPECT_FALSE(done.made->replay(on.work, scaled.what, {scaled.x.from_host(ones)}).has_value());
  ASSERT_FALSE(done.made->terms().explain(scaled.declared).empty());
  EXPECT_EQ(done.made->terms().explain(scaled.declared)[0].fact, "factor address");
}

TEST_P(recorder_test, another_shape_is_not_replayed) {
  test::scaling scaled{on.memory, on.work, 3.0F};
  recorded done = maker.record(on.work, scaled.what, {scaled.x.from_host(ones)});
  ones.push_back(1);
  EXPECT_FALSE(done.made->replay(on.work, scaled.what, {scaled.x.from_host(ones)}).has_value());
}

TEST_P(recorder_test, bytes_are_exact_and_come_back) {
  on.work.synchronize();
  test::scaling scaled{on.memory, on.work, 3.0F};
  { const recorded warmed = maker.record(on.work, scaled.what, {scaled.x.from_host(ones)}); }
  const std::size_t pinned = device_ref{on.opened}.pinned_bytes();
  {
    const recorded done = maker.record(on.work, scaled.what, {scaled.x.from_host(ones)});
    constexpr std::size_t ring = input_ring::most_slots * (stage_header_bytes(256) + 256) + 8;
    const recording_bytes bytes = done.made->bytes_by_owner();
    EXPECT_EQ(bytes.buffers + bytes.workspaces, std::size_t{64} * 1024) << "one small slab";
    EXPECT_EQ(bytes.pinned, ring) << "slots of the least size";
    EXPECT_EQ(bytes.executables,
              done.made->nodes() * device_ref{on.opened}.api().bytes_per_node({}));
    EXPECT_EQ(done.made->bytes(), bytes.total());
    EXPECT_EQ(device_ref{on.opened}.pinned_bytes(), pinned + ring);
  }
  EXPECT_EQ(device_ref{on.opened}.pinned_bytes(), pinned);
}

// The bitwise promise against a separate plain run: other device object, other memory, no
// recording.
TEST_P(recorder_test, twenty_replays_equal_a_separate_eager_run_bit_for_bit) {
  const auto run = [&](bool record) {
    test::bench own{GetParam()};
    test::adding adder{own.memory, own.work, 257};
    const step what = adder.make();
    replay_cache cache{own.opened, {.record = record}};
    std::vector<float> values(257);
    for (int i = 0; i < 20; ++i) {
      for (std::size_t j = 0; j < values.size(); ++j) {
        values[j] = 0.1F * static_cast<float>(i) + 1e-3F * static_cast<float>(j);
      }
      cache.run(own.work, what, {adder.x.from_host(values)});
    }
    EXPECT_EQ(cache.counts().replayed, record ? 19U : 0U);
    EXPECT_EQ(cache.counts().captured, record ? 1U : 0U);
    EXPECT_EQ(cache.counts().eager, record ? 0U : 20U);
    EXPECT_EQ((*own.calls)[seam_call::capture], record ? 1U : 0U);
    EXPECT_EQ((*own.calls)[seam_call::launch], record ? 20U : 0U);
    return test::read_back<float>(own.work, adder.total.all());
  };
  EXPECT_EQ(run(true), run(false));
}

}  // namespace
}  // namespace reprise
