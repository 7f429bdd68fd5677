// Direct inputs: read at the caller's address by kernels that follow a word, staged after all where
// another reader is found; and outputs that are left in the caller's memory.
#include "tests/replay/cases.hpp"

namespace reprise::test {
namespace {

class direct_inputs_on : public replay_case {
 protected:
  replay_cache cache{dev()};
};

REPRISE_ON_EACH_DEVICE(direct_inputs_on);

class direct_scaling {
 public:
  explicit direct_scaling(std::function<void(step_scope&, view<const float>)> more = {})
      : more_{std::move(more)} {}

  step make() {
    return step{declared, [this](step_scope& run) {
                  launch(run, scale_followed, read(run[x]), write(run.make(y, run.shape(x))), 2.0F);
                  if (more_) more_(run, run[x]);
                }};
  }

  signature declared{"direct"};
  const input<float> x = declared.in<float>("x", {any}, input_mode::direct);
  const output<float> y = declared.out<float>("y");

 private:
  std::function<void(step_scope&, view<const float>)> more_;
};

TEST_P(direct_inputs_on, two_addresses_in_turn_are_read_without_a_copy) {
  direct_scaling of;
  const step what = of.make();
  const buffer<float> first = desk.filled({1, 2, 3});
  const buffer<float> second = desk.filled({10, 20, 30});
  EXPECT_EQ(cache.run(s(), what, {of.x(first.all())}).how, ran::captured);
  for (int i = 0; i < 6; ++i) {
    const buffer<float>& in = i % 2 == 0 ? second : first;
    const calls_since since{*desk.calls};
    const step_result done = cache.run(s(), what, {of.x(in.all())});
    EXPECT_EQ(done.how, ran::replayed);
    EXPECT_EQ(since[seam_call::copy], 0U);
    EXPECT_EQ(since[seam_call::launch], 1U);
    EXPECT_EQ(desk.values_of(done[of.y].get()), times(2, desk.values_of(in)));
  }
  EXPECT_EQ(cache.recordings(), 1U);
  const recording_row row = cache.report().recordings.front();
  EXPECT_EQ(row.nodes, 2U) << "the one that brings the word, and the kernel";
  EXPECT_EQ(row.key, "x [3] direct");
  EXPECT_TRUE(row.staged_inputs.empty());
}

TEST_P(direct_inputs_on, a_reader_that_cannot_follow_makes_it_staged_and_is_named) {
  const buffer<float> sink = desk.filled({0, 0, 0});
  const struct {
    std::string reader;
    std::function<void(step_scope&, view<const float>)> reads;
  } readers[] = {
      {"kernel 'test_add_to'",
       [&](step_scope& run, view<const float> x) { launch(run, add_to, read(x), inout(sink)); }},
      {"data()", [](step_scope&, view<const float> x) { (void)x.data(); }},
      {"a part of it", [](step_scope&, view<const float> x) { (void)x.subview(0, 1); }},
  };
  for (const auto& each : readers) {
    SCOPED_TRACE(each.reader);
    direct_scaling of{each.reads};
    of.declared.state("sink", as_tensor(sink.all()));
    const step what = of.make();
    log.clear();
    replay_cache own{dev()};
    for (int i = 0; i < 4; ++i) {
      const floats in{1.0F + static_cast<float>(i), 2, 3};
      const buffer<float> bound = desk.filled(in);
      const step_result done = own.run(s(), what, {of.x(bound.all())});
      EXPECT_EQ(done.how, i == 0 ? ran::captured : ran::replayed);
      EXPECT_EQ(desk.values_of(done[of.y].get()), times(2, in));
    }
    const auto staged = own.report().recordings.front().staged_inputs;
    ASSERT_EQ(staged.size(), 1U);
    EXPECT_EQ(staged[0].input, "x");
    EXPECT_TRUE(has(staged[0].reader, each.reader)) << staged[0].reader;
    ASSERT_EQ(log.size(), 1U);
    EXPECT_TRUE(has(log[0], "'x' is staged")) << log[0];
    EXPECT_TRUE(has(log[0], each.reader)) << log[0];
  }
  EXPECT_EQ(desk.values_of(sink), (floats{1 + 2 + 3 + 4, 8, 12}));
}

TEST_P(direct_inputs_on, each_class_of_alignment_is_a_key) {
  direct_scaling of;
  const step what = of.make();
  const buffer<float> memory = desk.filled({0, 1, 2, 3, 4, 5, 6, 7, 8});
  const auto run = [&](std::size_t first) {
    const step_result done = cache.run(s(), what, {of.x(memory.all().subview(first, 4))});
    const auto at = static_cast<float>(first);
    EXPECT_EQ(desk.values_of(done[of.y].get()), times(2, {at, at + 1, at + 2, at + 3}));
    return done.how;
  };
  EXPECT_EQ(run(0), ran::captured);
  EXPECT_EQ(run(4), ran::replayed) << "16 bytes again";
  EXPECT_EQ(run(2), ran::captured) << "8 bytes";
  EXPECT_EQ(run(1), ran::captured) << "4 bytes";
  EXPECT_EQ(run(3), ran::replayed);
  EXPECT_EQ(cache.recordings(), 3U);
}

TEST_P(direct_inputs_on, from_host_memory_it_is_staged) {
  direct_scaling of;
  const step what = of.make();
  for (int i = 1; i <= 3; ++i) {
    const floats in{static_cast<float>(i), 5};
    const step_result done = cache.run(s(), what, {of.x.from_host(in)});
    EXPECT_EQ(done.how, i == 1 ? ran::captured : ran::replayed);
    EXPECT_EQ(desk.values_of(done[of.y].get()), times(2, in));
  }
  const buffer<float> bound = desk.filled({7, 8});
  EXPECT_EQ(cache.run(s(), what, {of.x(bound.all())}).how, ran::captured)
      << "from the device it is a key of its own";
}

TEST_P(direct_inputs_on, an_optional_one_may_be_left_out) {
  signature declared{"optional direct"};
  const auto x = declared.in<float>("x", {any}, input_mode::direct);
  const auto bias = declared.optional_in<float>("bias", {any}, input_mode::direct);
  const auto y = declared.out<float>("y");
  const step what{declared, [&](step_scope& run) {
                    const view<float> made = run.make(y, run.shape(x));
                    launch(run, scale_followed, read(run[x]), write(made), 2.0F);
                    if (!run.given(bias)) return;
                    const view<float> more = run.scratch<float>(run.shape(bias));
                    launch(run, scale_followed, read(run[bias]), write(more), 1.0F);
                    launch(run, add_to, read<float>{view<const float>{more}}, inout<float>{made});
                  }};
  const buffer<float> in = desk.filled({1, 2});
  const buffer<float> more = desk.filled({100, 200});
  for (int i = 0; i < 3; ++i) {
    const ran how = i == 0 ? ran::captured : ran::replayed;
    const step_result with = cache.run(s(), what, {x(in.all()), bias(more.all())});
    EXPECT_EQ(with.how, how);
    EXPECT_EQ(desk.values_of(with[y].get()), (floats{102, 204}));
    const step_result without = cache.run(s(), what, {x(in.all())});
    EXPECT_EQ(without.how, how);
    EXPECT_EQ(desk.values_of(without[y].get()), (floats{2, 4}));
  }
}

TEST_P(direct_inputs_on, a_step_with_breaks_stages_them) {
  signature declared{"direct and broken"};
  const auto x = declared.in<float>("x", {any}, input_mode::direct);
  const auto y = declared.out<float>("y");
  const step what{declared, [&](step_scope& run) {
                    const view<float> made = run.make(y, run.shape(x));
                    launch(run, scale_followed, read(run[x]), write(made), 2.0F);
                    run.eagerly("twice", [made](stream_ref on) {
                      launch(on, add_to, read<float>{view<const float>{made}}, inout<float>{made});
                    });
                  }};
  for (int i = 1; i <= 3; ++i) {
    const buffer<float> in = desk.filled({static_cast<float>(i), 2});
    const step_result done = cache.run(s(), what, {x(in.all())});
    EXPECT_EQ(done.how, i == 1 ? ran::captured : ran::replayed);
    EXPECT_EQ(desk.values_of(done[y].get()), times(4, desk.values_of(in)));
  }
}

TEST_P(direct_inputs_on, outputs_are_left_in_the_callers_memory_too) {
  direct_scaling of;
  const step what = of.make();
  const buffer<float> in = desk.filled({1, 2, 3});
  for (const bool record : {true, false}) {
    replay_cache own{dev(), {.record = record}};
    for (int i = 0; i < 3; ++i) {
      const buffer<float> to = desk.filled({0, 0, 0});
      const step_result done = own.run(s(), what, {of.x(in.all()), of.y.into(to.all())});
      EXPECT_EQ(desk.values_of(to), (floats{2, 4, 6}));
      EXPECT_EQ(desk.values_of(done[of.y].get()), (floats{2, 4, 6}));
    }
    EXPECT_EQ(own.counts().replayed, record ? 2U : 0U);
    const buffer<float> narrow = desk.filled({0, 0});
    EXPECT_TRUE(has(message_of<usage_error>([&] {
                      own.run(s(), what, {of.x(in.all()), of.y.into(narrow.all())});
                    }),
                    "output 'y' has 3 elements and its memory room for 2"));
    EXPECT_EQ(desk.values_of(narrow), (floats{0, 0}));
    EXPECT_TRUE(has(
        message_of<usage_error>([&] {
          own.run(s(), what, {of.x(in.all()), of.y.into(narrow.all()), of.y.into(narrow.all())});
        }),
        "output 'y' is bound twice"));
    EXPECT_TRUE(has(message_of<usage_error>([&] {
                      own.run(s(), what, {of.x(in.all()), of.y.into(view<float>{nullptr, 3})});
                    }),
                    "output 'y' is to go to null"));
  }
}

TEST_P(direct_inputs_on, a_wrong_place_for_an_output_is_refused_in_the_first_run_too) {
  direct_scaling of;
  const step what = of.make();
  const buffer<float> in = desk.filled({1, 2, 3});
  const buffer<float> narrow = desk.filled({5, 5});
  EXPECT_THROW(cache.run(s(), what, {of.x(in.all()), of.y.into(narrow.all())}), usage_error);
  EXPECT_EQ(cache.recordings(), 0U);
  EXPECT_EQ(desk.values_of(narrow), (floats{5, 5}));
}

// The lifetime of a direct input is the caller's: the replay that reads it late is found.
TEST(a_direct_input, that_is_freed_before_its_replay_has_run_is_found) {
  const exploration seen =
      explore(20,
              [](device_ref dev) {
                const stream s{dev};
                pool memory{dev, "inputs"};
                direct_scaling of;
                const step what = of.make();
                std::optional<buffer<float>> in{std::in_place, memory, std::size_t{3}, s};
                fill(s, write<float>{*in}, 1.0F);
                replay_cache cache{dev};
                cache.run(s, what, {of.x(in->all())});
                const view<const float> gone = in->all();
                in.reset();
                cache.run(s, what, {of.x(gone)});
                s.synchronize();
              },
              {.kernels = replay_kernels()});
  ASSERT_FALSE(seen.failures.empty());
  EXPECT_EQ(seen.failures.front().kind, "use after free") << seen.failures.front().what;
}

TEST(a_direct_input, that_is_kept_is_no_finding) {
  const exploration seen = explore(
      20,
      [](device_ref dev) {
        const stream s{dev};
        pool memory{dev, "inputs"};
        direct_scaling of;
        const step what = of.make();
        replay_cache cache{dev};
        for (int i = 0; i < 4; ++i) {
          buffer<float> in{memory, 3, s};
          fill(s, write<float>{in}, static_cast<float>(i));
          const step_result done = cache.run(s, what, {of.x(in.all())});
          if (read_back<float>(s, done[of.y].get()) != floats(3, 2.0F * static_cast<float>(i))) {
            throw std::runtime_error{"a wrong result"};
          }
        }
      },
      {.kernels = replay_kernels()});
  EXPECT_TRUE(seen.failures.empty()) << seen;
}

}  // namespace
}  // namespace reprise::test
