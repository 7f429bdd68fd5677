// The field's cases about the cache: keys, the byte budget, who is dropped, and keys that thrash.
#include <list>

#include "reprise/device/faulty.hpp"
#include "tests/replay/cases.hpp"

namespace reprise::test {
namespace {

class cache_cases : public replay_case {
 protected:
  // What one recording of a small step takes.
  std::size_t bytes_of_one() {
    replay_cache cache{dev()};
    weighted of{desk, 2};
    cache.run(s(), of.what(), {of.x.from_host(floats{1})});
    return cache.budget().held();
  }

  static std::uint64_t calls_of(const step_counts& counts) {
    return counts.captured + counts.replayed + counts.eager;
  }
  static void expect_reasons_add_up(const step_counts& counts) {
    std::uint64_t all = 0;
    for (const auto& [rule, count] : counts.eager_reasons) all += count;
    EXPECT_EQ(all, counts.eager);
  }

  floats values{1, 2, 3};
};

REPRISE_ON_EACH_DEVICE(cache_cases);

TEST_P(cache_cases, R11_work_that_is_built_anew_each_time_is_one_recording) {
  replay_cache cache{dev()};
  const buffer<float> factor = desk.filled({2});
  std::size_t bytes = 0;
  for (int i = 0; i < 1000; ++i) {
    parameter weight{as_tensor(factor.all()), {}};
    signature declared{"built anew"};
    declared.same_work_as("doubling");
    const auto x = declared.in<float>("x", {any, 1});
    const auto y = declared.out<float>("y");
    declared.uses("factor", weight);
    const step what{declared, [&](step_scope& run) {
                      launch(run, matmul<float, float>, read(run[x]),
                             read(elements_of<float>(weight.value)),
                             write(run.make(y, run.shape(x))), 1, 1);
                    }};
    const floats in{static_cast<float>(i), 1};
    const step_result done = cache.run(s(), what, {x.from_host(in)});
    if (i % 100 == 99) {
      EXPECT_EQ(desk.values_of(done[y].get()), times(2, in));
    }
    if (i == 0) bytes = cache.budget().held();
    ASSERT_EQ(cache.budget().held(), bytes);
  }
  EXPECT_EQ(cache.recordings(), 1U);
  EXPECT_EQ(cache.counts().captured, 1U);
  EXPECT_EQ(cache.counts().replayed, 999U);
}

TEST_P(cache_cases, R11_the_same_words_for_other_work_are_refused) {
  replay_cache cache{dev()};
  const auto named = [&](const char* input_name, const char* words = "work") {
    signature declared{"built anew"};
    declared.same_work_as(words);
    const auto x = declared.in<float>(input_name, {any});
    const step what{declared, [](step_scope&) {}};
    cache.run(s(), what, {x.from_host(values)});
  };
  named("x");
  EXPECT_TRUE(has(message_of<usage_error>([&] { named("z"); }), "give it words of its own"));
  named("x");
  EXPECT_EQ(cache.counts().replayed, 1U);
  named("z", "other work");
  named("z", "other work");
  EXPECT_EQ(cache.counts().replayed, 2U);
}

// Their keys have one hash, since the places of state are compared and not hashed.
TEST_P(cache_cases, R11_the_same_work_on_other_state_is_a_recording_of_its_own) {
  replay_cache cache{dev()};
  tally first{desk, 3};
  tally second{desk, 3};
  for (tally* const of : {&first, &second}) of->declared.same_work_as("tally");
  for (int i = 1; i <= 3; ++i) {
    for (tally* const of : {&first, &second}) {
      const step_result done = cache.run(s(), of->what(), {of->x.from_host(values)});
      EXPECT_EQ(done.how, i == 1 ? ran::captured : ran::replayed);
      EXPECT_EQ(desk.values_of(done[of->sum].get()), times(static_cast<float>(i), values));
    }
  }
  EXPECT_EQ(cache.recordings(), 2U);
}

// Random use of forty keys; a model of the host says what is there.
TEST_P(cache_cases, R12_the_budget_holds_for_all_variants_together) {
  constexpr std::size_t room = 10;
  constexpr int calls = 300;
  byte_budget budget{room * bytes_of_one()};
  replay_cache cache{dev(), {.churn_limit = calls, .budget = &budget}};
  std::vector<std::unique_ptr<weighted>> variants;
  for (int v = 0; v < 8; ++v) {
    variants.push_back(std::make_unique<weighted>(desk, static_cast<float>(v + 1)));
  }
  std::list<std::pair<std::size_t, std::size_t>> kept;  // the last used first
  std::uint64_t hits = 0;
  std::uint64_t evictions = 0;
  std::uint32_t dice = 12345;
  const auto draw = [&](std::uint32_t below) {
    dice = dice * 1664525U + 1013904223U;
    return (dice >> 16) % below;
  };
  for (int i = 0; i < calls; ++i) {
    const std::pair<std::size_t, std::size_t> key{draw(8), draw(5) + 1};
    const auto found = std::ranges::find(kept, key);
    const bool hit = found != kept.end();
    if (hit) {
      ++hits;
      kept.erase(found);
    } else if (kept.size() == room) {
      ++evictions;
      kept.pop_back();
    }
    kept.push_front(key);
    weighted& of = *variants[key.first];
    const floats in(key.second, static_cast<float>(i));
    const step_result done = cache.run(s(), of.what(), {of.x.from_host(in)});
    ASSERT_EQ(done.how, hit ? ran::replayed : ran::captured) << i;
    ASSERT_EQ(desk.values_of(done[of.y].get()), times(static_cast<float>(key.first + 1), in));
    ASSERT_LE(budget.held(), budget.limit());
  }
  EXPECT_LE(budget.most_held(), budget.limit());
  EXPECT_GT(evictions, 100U) << "the budget was never tight";
  EXPECT_EQ(cache.counts().evicted, evictions);
  EXPECT_EQ(cache.counts().replayed, hits);
  EXPECT_EQ(cache.counts().captured, calls - hits);
  EXPECT_EQ(cache.counts().missed, calls - hits);
  EXPECT_EQ(calls_of(cache.counts()), static_cast<std::uint64_t>(calls));
}

TEST_P(cache_cases, two_caches_share_a_budget) {
  byte_budget budget{3 * bytes_of_one()};
  weighted of{desk, 2};
  const auto run = [&](replay_cache& in, std::size_t length) {
    return in.run(s(), of.what(), {of.x.from_host(floats(length, 1.0F))}).how;
  };
  std::optional<replay_cache> first{std::in_place, dev(), cache_options{.budget = &budget}};
  replay_cache second{dev(), {.budget = &budget}};
  EXPECT_EQ(run(*first, 1), ran::captured);
  EXPECT_EQ(run(*first, 2), ran::captured);
  EXPECT_EQ(run(*first, 3), ran::captured);
  EXPECT_EQ(run(second, 1), ran::eager) << "the other's recordings are not its to drop";
  EXPECT_EQ(second.counts().refused, 1U);
  EXPECT_EQ(run(second, 1), ran::eager);
  EXPECT_EQ(budget.most_held(), budget.limit());
  first.reset();
  EXPECT_EQ(budget.held(), 0U);
  EXPECT_EQ(run(second, 1), ran::captured);
  EXPECT_EQ(run(second, 1), ran::replayed);
}

TEST_P(cache_cases, what_was_used_last_stays_when_room_is_made) {
  byte_budget budget{2 * bytes_of_one()};
  replay_cache cache{dev(), {.budget = &budget}};
  weighted of{desk, 2};
  const auto run = [&](std::size_t length) {
    return cache.run(s(), of.what(), {of.x.from_host(floats(length, 1.0F))}).how;
  };
  EXPECT_EQ(run(1), ran::captured);
  EXPECT_EQ(run(2), ran::captured);
  EXPECT_EQ(run(1), ran::replayed);
  EXPECT_EQ(run(3), ran::captured);
  EXPECT_EQ(cache.counts().evicted, 1U);
  EXPECT_EQ(run(1), ran::replayed);
  EXPECT_EQ(run(2), ran::captured) << "it was used least recently";
}

// Two types of one input are two signatures under one name.
class two_types {
 public:
  two_types() {
    what.emplace(declared, [this](step_scope& run) {
      copy(run, read(run[x]), write(run.make(y, run.shape(x))));
    });
    narrow.emplace(other, [this](step_scope& run) {
      copy(run, read(run[ix]), write(run.make(iy, run.shape(ix))));
    });
  }
  ran run(replay_cache& in, stream_ref on, bool first) {
    const floats values{1};
    const std::vector<std::int32_t> whole{1};
    if (first) return in.run(on, *what, {x.from_host(values)}).how;
    return in.run(on, *narrow, {ix.from_host(whole)}).how;
  }

  signature declared{"casting"};
  const input<float> x = declared.in<float>("x", {any});
  const output<float> y = declared.out<float>("y");
  signature other{"casting"};
  const input<std::int32_t> ix = other.in<std::int32_t>("x", {any});
  const output<std::int32_t> iy = other.out<std::int32_t>("y");
  std::optional<step> what;
  std::optional<step> narrow;
};

TEST_P(cache_cases, R18_two_types_in_turn_are_two_recordings) {
  two_types of;
  replay_cache cache{dev()};
  for (int i = 0; i < 100; ++i) of.run(cache, s(), i % 2 == 0);
  EXPECT_EQ(cache.recordings(), 2U);
  EXPECT_EQ(cache.counts().captured, 2U);
  EXPECT_EQ(cache.counts().replayed, 98U);
}

TEST_P(cache_cases, R18_keys_that_drop_each_other_are_held_eager_after_a_few_recordings) {
  two_types of;
  std::size_t one = 0;
  {
    replay_cache cache{dev()};
    of.run(cache, s(), true);
    one = cache.budget().held();
  }
  byte_budget budget{one + one / 2};
  replay_cache cache{dev(), {.churn_limit = 3, .budget = &budget}};
  for (int i = 0; i < 100; ++i) of.run(cache, s(), i % 2 == 0);
  EXPECT_EQ(cache.counts().captured, 6U) << "three of each";
  EXPECT_EQ(cache.counts().eager_reasons.at("churn"), 47U) << "the first was dropped thrice first";
  EXPECT_EQ(cache.counts().thrashed, 47U);
  EXPECT_EQ(cache.counts().replayed, 47U) << "so the second is left alone";
  EXPECT_EQ(calls_of(cache.counts()), 100U);
  expect_reasons_add_up(cache.counts());
  EXPECT_EQ(std::ranges::count_if(log, [](const auto& l) { return has(l, "churn"); }), 1);
  EXPECT_TRUE(has(cache.explain(), "thrash: 47 runs")) << cache.explain();
}

TEST_P(cache_cases, R19_a_size_past_the_largest_recorded_runs_eagerly_says_so_once_and_recovers) {
  weighted of{desk, 2};
  replay_cache cache{dev(), {.prepared_only = true}};
  for (const std::int64_t rows : {8, 64}) {
    EXPECT_EQ(cache.prepare(s(), of.what(), {{rows, 1}}), nullptr);
  }
  const auto run = [&](std::size_t rows) {
    const floats in(rows, 3.0F);
    step_result done = cache.run(s(), of.what(), {of.x.from_host(in)});
    EXPECT_EQ(desk.values_of(done[of.y].get()), floats(rows, 6.0F));
    return done;
  };
  EXPECT_EQ(run(64).how, ran::replayed);
  for (int i = 0; i < 100; ++i) {
    const step_result beyond = run(65);
    ASSERT_EQ(beyond.how, ran::eager);
    ASSERT_EQ(beyond.why->rule, "not prepared");
    ASSERT_EQ(beyond.why->breaches.size(), 1U);
    EXPECT_EQ(beyond.why->breaches[0].fact, "x");
    EXPECT_EQ(beyond.why->breaches[0].expected, "[64, 1]");
    EXPECT_EQ(beyond.why->breaches[0].actual, "[65, 1]");
  }
  EXPECT_EQ(run(64).how, ran::replayed);
  EXPECT_EQ(run(8).how, ran::replayed);
  EXPECT_EQ(cache.counts().eager_reasons.at("not prepared"), 100U);
  EXPECT_EQ(cache.counts().prepared, 2U);
  EXPECT_EQ(cache.counts().captured, 0U);
  ASSERT_EQ(log.size(), 1U);
  EXPECT_TRUE(has(log[0], "[64, 1]") && has(log[0], "[65, 1]")) << log[0];
}

TEST_P(cache_cases, sleeping_gives_all_bytes_back_and_waking_records_again) {
  weighted of{desk, 2};
  replay_cache cache{dev()};
  for (const std::size_t length : {1U, 2U, 3U}) {
    cache.run(s(), of.what(), {of.x.from_host(floats(length, 1.0F))});
  }
  EXPECT_EQ(cache.recordings(), 3U);
  cache.sleep();
  EXPECT_EQ(cache.recordings(), 0U);
  EXPECT_EQ(cache.budget().held(), 0U);
  EXPECT_EQ(cache.bytes().recordings, 0U);
  EXPECT_EQ(cache.counts().evicted, 3U);
  const step_result done = cache.run(s(), of.what(), {of.x.from_host(values)});
  EXPECT_EQ(done.how, ran::captured);
  EXPECT_EQ(desk.values_of(done[of.y].get()), times(2, values));
}

TEST_P(cache_cases, a_new_version_drops_every_recording_of_the_old_one) {
  weighted of{desk, 2};
  weighted other{desk, 3};
  replay_cache cache{dev()};
  for (const std::size_t length : {1U, 2U, 3U}) {
    cache.run(s(), of.what(), {of.x.from_host(floats(length, 1.0F))});
  }
  cache.run(s(), other.what(), {other.x.from_host(values)});
  of.weight.version.bump();
  EXPECT_EQ(cache.drop_stale(), 3U);
  EXPECT_EQ(cache.recordings(), 1U);
  EXPECT_EQ(cache.run(s(), other.what(), {other.x.from_host(values)}).how, ran::replayed);
  // And without being told, at the first run that meets one.
  for (const std::size_t length : {1U, 2U, 3U}) {
    cache.run(s(), of.what(), {of.x.from_host(floats(length, 1.0F))});
  }
  of.weight.version.bump();
  EXPECT_EQ(cache.run(s(), of.what(), {of.x.from_host(floats(2, 1.0F))}).how, ran::eager);
  EXPECT_EQ(cache.recordings(), 1U);
  EXPECT_EQ(cache.counts().evicted, 6U);
}

TEST_P(cache_cases, each_eager_run_has_a_reason_and_they_add_up) {
  weighted of{desk, 2};
  std::uint64_t mode = 0;
  of.declared.fact(
      "mode", [&] { return mode; }, on_breach::run_eagerly);
  replay_cache cache{dev(), {.admit_after = 3}};
  const auto run = [&] { return cache.run(s(), of.what(), {of.x.from_host(values)}).how; };
  EXPECT_EQ(run(), ran::eager);
  EXPECT_EQ(run(), ran::eager);
  EXPECT_EQ(run(), ran::captured);
  EXPECT_EQ(run(), ran::replayed);
  mode = 1;
  EXPECT_EQ(run(), ran::eager);
  mode = 0;
  EXPECT_EQ(run(), ran::replayed);
  of.weight.version.bump();
  EXPECT_EQ(run(), ran::eager);
  const auto mine = std::make_shared<const reason>(reason{"asked for", {}});
  EXPECT_EQ(cache.run(s(), of.what(), {of.x.from_host(values)}, mine).why, mine);
  const step_counts& counts = cache.counts();
  EXPECT_EQ(counts.eager_reasons.at("not admitted yet"), 2U);
  EXPECT_EQ(counts.eager_reasons.at("fact changed"), 2U);
  EXPECT_EQ(counts.eager_reasons.at("asked for"), 1U);
  EXPECT_EQ(calls_of(counts), 8U);
  expect_reasons_add_up(counts);
}

TEST_P(cache_cases, a_drain_tries_every_stream_and_tells_the_first_failure) {
  const auto plan = std::make_shared<fault_plan>();
  case_desk own{GetParam(), [&](auto bare) { return faulty(std::move(bare), plan); }};
  weighted of{own, 2};
  const stream other{own.opened};
  replay_cache cache{own.opened};
  cache.run(own.work, of.what(), {of.x.from_host(floats(1, 1.0F))});
  cache.run(other, of.what(), {of.x.from_host(floats(2, 1.0F))});
  plan->fail_call(seam_call::synchronize, 1);
  EXPECT_THROW(cache.drain(), device_error);
  EXPECT_TRUE(plan->fired());
  EXPECT_NO_THROW(cache.drain()) << "nothing is held by the one before";
  const reports reported;
  plan->fail_call(seam_call::synchronize, 1);
  struct at_unwinding {
    replay_cache& cache;
    ~at_unwinding() { cache.drain(); }
  };
  const auto failing = [&] {
    const at_unwinding drains{cache};
    throw std::range_error{"the run's own"};
  };
  EXPECT_EQ(message_of<std::range_error>(failing), "the run's own");
  EXPECT_EQ(reports::taken().size(), 1U) << "a warning";
}

}  // namespace
}  // namespace reprise::test
