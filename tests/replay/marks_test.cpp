// Observers whose works can be captured: steps are recorded with them, and replays run them.
#include "reprise/replay/marks.hpp"

#include "tests/replay/support.hpp"
#include "tests/support/observe.hpp"

namespace reprise {
namespace {

// Copies each marked tensor of one float to memory of its own, and counts what it is told.
class copying_observer final : public mark_observer {
 public:
  copying_observer(pool& memory, stream_ref stream) : copied{memory, 1, stream} {}

  std::uint64_t recorded_as() const override { return word; }
  void on_begin(step_scope& run) override {
    const stream_ref on = run;
    ++(on.capturing() ? captures : eager_runs);
    if (!on.capturing()) eager_ids.push_back(run.inputs().run);
  }
  void on_mark(step_scope& run, point, const tensor_ref& what) override {
    copy(run, read(elements_of<float>(what)), write(copied));
  }
  std::shared_ptr<recorded_marks> on_end(step_scope& run) override {
    const stream_ref on = run;
    if (!on.capturing()) return nullptr;
    return std::make_shared<left>(*this);
  }
  void on_abandoned() noexcept override { ++abandoned; }
  void on_bare_run(replay_id id) override { bare.push_back(id); }

  struct left final : recorded_marks {
    explicit left(copying_observer& o) : of{o} {}
    std::shared_ptr<const reason> make_room(site) override {
      ++of.asked;
      return of.refuses ? because("no room") : nullptr;
    }
    void before_launch(site, replay_id id) override {
      if (of.fails) throw usage_error{"the words do not fit"};
      of.ids.push_back(id);
    }
    void after_launch(site, bool launched) noexcept override {
      ++(launched ? of.launched : of.withdrawn);
    }
    copying_observer& of;
  };

  buffer<float> copied;
  std::uint64_t word = 7;
  bool refuses = false, fails = false;
  int captures = 0, eager_runs = 0, abandoned = 0, asked = 0, launched = 0, withdrawn = 0;
  std::vector<replay_id> ids, eager_ids, bare;
};

class recordable_observers : public ::testing::TestWithParam<std::string> {
 protected:
  test::bench on{GetParam()};
  test::scaling model{on.memory, on.work, 3.0F};
  std::shared_ptr<copying_observer> observer =
      std::make_shared<copying_observer>(on.memory, on.work);
  replay_cache cache{on.opened};
  const step marked{
      model.declared, [this](step_scope& run) {
        launch(run, matmul<float, float>, read(run[model.x]),
               read(elements_of<float>(model.weight.value)),
               write(run.make(model.y, run.shape(model.x))), 1, 1);
        run.mark({"input", 0}, as_tensor(view<float>{const_cast<float*>(run[model.x].data()), 1}));
      }};

  step_result run(float x) {
    return cache.run(on.work, marked, {model.x.from_host(std::span<const float>{&x, 1})});
  }
  float seen() { return test::read_back<float>(on.work, observer->copied.all())[0]; }
};

INSTANTIATE_TEST_SUITE_P(devices, recordable_observers,
                         ::testing::ValuesIn(test::devices_under_test()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(recordable_observers, are_part_of_what_is_recorded_and_replayed) {
  cache.observe(observer);
  std::vector<replay_id> ran_as;
  for (const float x : {2.0F, 5.0F, 11.0F}) {
    const step_result done = run(x);
    EXPECT_EQ(done.how, ran_as.empty() ? ran::captured : ran::replayed);
    ran_as.push_back(done.replay);
    EXPECT_EQ(seen(), x);
  }
  EXPECT_EQ(observer->captures, 1);
  EXPECT_EQ(observer->eager_runs, 0) << "a warm-up is not shown";
  EXPECT_EQ(observer->ids, ran_as);
  EXPECT_EQ(observer->launched, 3);
}

TEST_P(recordable_observers, with_another_word_are_another_recording) {
  run(1.0F);
  cache.observe(observer);
  EXPECT_EQ(run(2.0F).how, ran::captured);
  observer->word = 8;
  EXPECT_EQ(run(3.0F).how, ran::captured);
  observer->word = 7;
  EXPECT_EQ(run(4.0F).how, ran::replayed);
  EXPECT_EQ(seen(), 4.0F);
  observer->word = 0;
  const step_result eager = run(5.0F);
  EXPECT_EQ(eager.how, ran::eager);
  EXPECT_EQ(eager.why->rule, "observer installed");
  EXPECT_EQ(observer->eager_ids, std::vector{eager.replay});
  cache.stop_observing();
  EXPECT_EQ(run(6.0F).how, ran::replayed) << "the one without observers";
  on.work.synchronize();
  EXPECT_EQ(seen(), 5.0F);
}

// What leaves nothing in a graph shares the recording with no observer at all, whoever was first.
TEST_P(recordable_observers, that_leave_nothing_are_told_and_share_what_is_recorded) {
  observer->word = mark_observer::leaves_nothing;
  cache.observe(observer);
  std::vector<replay_id> ran_as;
  for (const float x : {2.0F, 3.0F, 4.0F}) ran_as.push_back(run(x).replay);
  EXPECT_EQ(cache.counts().captured, 1U);
  EXPECT_EQ(cache.counts().replayed, 2U);
  EXPECT_EQ(observer->captures + observer->eager_runs, 0);
  EXPECT_EQ(observer->bare, ran_as);
  cache.stop_observing();
  EXPECT_EQ(run(5.0F).how, ran::replayed);
  observer->word = 7;
  cache.observe(observer);
  EXPECT_EQ(run(6.0F).how, ran::captured);
  EXPECT_EQ(seen(), 6.0F);
  observer->word = mark_observer::leaves_nothing;
  EXPECT_EQ(run(7.0F).how, ran::replayed);
  EXPECT_EQ(seen(), 6.0F);
  EXPECT_EQ(observer->bare.size(), 4U);
}

TEST_P(recordable_observers, without_room_have_the_step_run_eagerly_and_say_why) {
  cache.observe(observer);
  observer->refuses = true;
  const step_result first = run(2.0F);
  EXPECT_EQ(first.how, ran::eager);
  EXPECT_EQ(first.why->rule, "no room");
  EXPECT_EQ(seen(), 2.0F);
  observer->refuses = false;
  EXPECT_EQ(run(3.0F).how, ran::replayed) << "what was recorded is kept";
  observer->refuses = true;
  EXPECT_EQ(run(4.0F).how, ran::eager);
  const step_counts& counts = cache.counts();
  EXPECT_EQ(counts.captured + counts.replayed + counts.eager, 3U);
  EXPECT_EQ(counts.eager_reasons.at("no room"), 2U);
}

TEST_P(recordable_observers, hear_of_a_launch_that_failed) {
  cache.observe(observer);
  run(2.0F);
  observer->fails = true;
  EXPECT_THROW(run(3.0F), usage_error);
  EXPECT_EQ(observer->withdrawn, 1);
  observer->fails = false;
  EXPECT_EQ(run(4.0F).how, ran::replayed);
  EXPECT_EQ(seen(), 4.0F);
}

TEST_P(recordable_observers, of_a_step_with_breaks_have_it_run_eagerly) {
  const step broken{model.declared, [this](step_scope& run) {
                      run.eagerly("looks around", [](stream_ref) {});
                      marked.run(run);
                    }};
  cache.observe(observer);
  const float x = 9.0F;
  const auto once = [&] {
    return cache.run(on.work, broken, {model.x.from_host(std::span<const float>{&x, 1})});
  };
  const step_result done = once();
  EXPECT_EQ(done.how, ran::eager);
  EXPECT_EQ(done.why->rule, "observed step has breaks");
  EXPECT_EQ(seen(), 9.0F);
}

}  // namespace
}  // namespace reprise
