// The field's cases about what a recording depends on: weights, memory, versions, and reasons that
// help.
#include "tests/replay/cases.hpp"

namespace reprise::test {
namespace {

class contract_cases : public replay_case {
 protected:
  ran run(weighted& of, const floats& in) {
    last = cache.run(s(), of.what(), {of.x.from_host(in)});
    return last.how;
  }
  floats result(const weighted& of) { return desk.values_of(last[of.y].get()); }
  const breach& first_breach() const { return last.why->breaches.front(); }

  replay_cache cache{dev()};
  step_result last;
  floats values{1, 2, 3};
};

REPRISE_ON_EACH_DEVICE(contract_cases);

TEST_P(contract_cases, R1_moved_weights_are_not_replayed_and_the_bytes_come_back) {
  weighted of{desk, 2};
  EXPECT_EQ(run(of, values), ran::captured);
  EXPECT_EQ(run(of, values), ran::replayed);
  const std::size_t held = cache.budget().held();
  EXPECT_GT(held, 0U);
  const lease<float> old = last[of.y];
  of.reload(desk, 7);
  EXPECT_EQ(run(of, values), ran::eager);
  EXPECT_EQ(result(of), (floats{7, 14, 21}));
  ASSERT_EQ(last.why->breaches.size(), 3U);
  EXPECT_EQ(last.why->breaches[0].fact, "factor address");
  EXPECT_EQ(last.why->breaches[1].fact, "factor version");
  EXPECT_EQ(last.why->breaches[1].expected, "0x1");
  EXPECT_EQ(last.why->breaches[1].actual, "0x2");
  EXPECT_EQ(last.why->breaches[2].fact, "factor");
  EXPECT_EQ(last.why->breaches[2].actual, contract::freed);
  EXPECT_FALSE(old.valid());
  EXPECT_EQ(cache.recordings(), 0U);
  cache.drain();
  EXPECT_EQ(cache.budget().held(), 0U) << "the old recording's bytes are back";
  EXPECT_EQ(run(of, values), ran::captured);
  EXPECT_EQ(run(of, values), ran::replayed);
  EXPECT_EQ(result(of), (floats{7, 14, 21}));
  EXPECT_EQ(cache.counts().captured, 2U);
  EXPECT_EQ(cache.counts().evicted, 1U);
  EXPECT_EQ(log.size(), 1U);
}

// A step that reads an input, a weight, state, and memory that its body just refers to.
class dependent {
 public:
  explicit dependent(case_desk& at) : at_{at} {
    weight.value = as_tensor(factor->all());
    declared.uses("factor", weight);
    declared.state("total", as_tensor(total->all()));
  }

  step make() {
    return step{declared, [this](step_scope& run) {
                  const view<float> made = run.make(y, run.shape(x));
                  launch(run, matmul<float, float>, read(run[x]),
                         read(elements_of<float>(weight.value)), write(made), 1, 1);
                  launch(run, add_to, read(*offset), inout<float>{made});
                  launch(run, add_to, read<float>{view<const float>{made}}, inout(*total));
                }};
  }

  case_desk& at_;
  std::optional<buffer<float>> factor{at_.filled({2})};
  std::optional<buffer<float>> offset{at_.filled({1, 1})};
  std::optional<buffer<float>> total{at_.filled({0, 0})};
  parameter weight;
  signature declared{"dependent"};
  const input<float> x = declared.in<float>("x", {any, 1});
  const output<float> y = declared.out<float>("y");
};

TEST_P(contract_cases, R2_each_freed_dependency_makes_the_recording_invalid_at_once) {
  const floats in{3, 4};
  for (const std::string freed : {"factor", "offset", "total"}) {
    SCOPED_TRACE(freed);
    replay_cache own{dev()};
    dependent of{desk};
    const step what = of.make();
    buffer<float> bound = desk.filled(in);
    ASSERT_EQ(own.run(s(), what, {of.x(bound.all())}).how, ran::captured);
    ASSERT_EQ(own.run(s(), what, {of.x(bound.all())}).how, ran::replayed);
    bound = desk.filled(in);
    ASSERT_EQ(own.run(s(), what, {of.x(bound.all())}).how, ran::replayed)
        << "an input may be freed and come from elsewhere";
    // Freed, and taken by another owner at once, who fills it with a pattern.
    std::optional<buffer<float>>& memory = freed == "factor"   ? of.factor
                                           : freed == "offset" ? of.offset
                                                               : of.total;
    const std::size_t length = memory->size();
    memory.reset();
    const buffer<float> others = desk.filled(floats(length, 9.0F));
    if (freed == "total") {
      // The signature names its place, so there is no step to run any more.
      EXPECT_EQ(own.drop_stale(), 1U) << "void at the free, not at the next call";
    } else {
      memory.emplace(desk.filled(floats(length, 5.0F)));
      of.weight.value = as_tensor(of.factor->all());
      const step_result after = own.run(s(), what, {of.x(bound.all())});
      ASSERT_EQ(after.how, ran::eager);
      const std::string name = freed == "offset" ? "memory that kernel 'test_add_to' reads" : freed;
      const bool named = std::ranges::any_of(after.why->breaches, [&](const breach& b) {
        return b.fact == name && b.actual == contract::freed;
      });
      EXPECT_TRUE(named) << after.why->text();
      EXPECT_EQ(desk.values_of(after[of.y].get()),
                freed == "offset" ? (floats{11, 13}) : (floats{16, 21}));
      EXPECT_EQ(own.run(s(), what, {of.x(bound.all())}).how, ran::captured);
    }
    EXPECT_EQ(desk.values_of(others), floats(length, 9.0F));
  }
}

TEST_P(contract_cases, R3_a_change_that_throws_half_way_leaves_no_recording_of_either_state) {
  weighted of{desk, 2};
  version_counter adapter;
  of.declared.fact("adapter", adapter);
  for (const bool before_the_first_write : {false, true}) {
    ASSERT_EQ(run(of, values), ran::captured);
    ASSERT_EQ(run(of, values), ran::replayed);
    const std::uint64_t version = adapter.value();
    try {
      const version_change changing{adapter};
      if (before_the_first_write) throw std::runtime_error{"no adapter"};
      desk.set(of.factor, {5});
      throw std::runtime_error{"no second half"};
    } catch (const std::runtime_error& failed) {
      EXPECT_STREQ(failed.what(), before_the_first_write ? "no adapter" : "no second half");
    }
    EXPECT_EQ(adapter.value(), version + 2);
    EXPECT_EQ(run(of, values), ran::eager);
    EXPECT_EQ(first_breach().fact, "adapter");
    EXPECT_EQ(result(of), times(5, values)) << "of what is there now";
  }
}

TEST_P(contract_cases, R3_what_was_recorded_within_a_change_is_not_replayed_behind_it) {
  weighted of{desk, 2};
  version_counter adapter;
  of.declared.fact("adapter", adapter);
  {
    const version_change changing{adapter};
    EXPECT_EQ(run(of, values), ran::captured);
  }
  EXPECT_EQ(run(of, values), ran::eager);
}

TEST_P(contract_cases, R7_a_larger_shape_moves_no_memory_of_a_smaller_one) {
  weighted of{desk, 3};
  const floats small(8, 2.0F);
  const floats large(5000, 4.0F);
  EXPECT_EQ(run(of, small), ran::captured);
  EXPECT_EQ(run(of, large), ran::captured);
  EXPECT_EQ(result(of), floats(5000, 12.0F));
  EXPECT_EQ(run(of, small), ran::replayed);
  EXPECT_EQ(result(of), floats(8, 6.0F));
  // The memory of eager runs does move, when a larger one comes; recordings are not in it.
  weighted eager{desk, 5};
  const step never{eager.declared, [&](step_scope& run) { eager.what().run(run); },
                   eager_only{"prefill"}};
  for (const floats& in : {small, large, small}) {
    cache.run(s(), never, {eager.x.from_host(in)});
    EXPECT_EQ(run(of, small), ran::replayed);
    EXPECT_EQ(result(of), floats(8, 6.0F));
  }
}

class nobody : public mark_observer {
 public:
  void on_mark(step_scope&, point, const tensor_ref&) override {}
};

// The sides of a contract: each alone is one structured entry.
TEST_P(contract_cases, R24_each_side_of_the_contract_is_a_structured_entry_of_its_own) {
  weighted of{desk, 2};
  std::uint64_t precision = 32;
  std::uint64_t gradients = 0;
  of.declared.fact(
      "compute type", [&] { return precision; }, on_breach::run_eagerly);
  of.declared.fact(
      "gradient mode", [&] { return gradients; }, on_breach::run_eagerly);
  ASSERT_EQ(run(of, values), ran::captured);

  precision = 19;
  EXPECT_EQ(run(of, values), ran::eager);
  ASSERT_EQ(last.why->breaches.size(), 1U);
  EXPECT_EQ(first_breach().fact, "compute type");
  EXPECT_EQ(first_breach().expected, "0x20");
  EXPECT_EQ(first_breach().actual, "0x13");
  precision = 32;
  gradients = 1;
  EXPECT_EQ(run(of, values), ran::eager);
  ASSERT_EQ(last.why->breaches.size(), 1U);
  EXPECT_EQ(first_breach().fact, "gradient mode");
  precision = 19;
  EXPECT_EQ(run(of, values), ran::eager);
  ASSERT_EQ(last.why->breaches.size(), 2U) << "two broken fields are two entries";
  EXPECT_EQ(last.why->breaches[0].fact, "compute type");
  EXPECT_EQ(last.why->breaches[1].fact, "gradient mode");
  precision = 32;
  gradients = 0;
  EXPECT_EQ(run(of, values), ran::replayed) << "it was kept all the while";

  cache.observe(std::make_shared<nobody>());
  EXPECT_EQ(run(of, values), ran::eager);
  EXPECT_EQ(first_breach().fact, "observers");
  EXPECT_EQ(first_breach().expected, "none");
  cache.stop_observing();
  EXPECT_EQ(run(of, values), ran::replayed);

  of.weight.version.bump();
  EXPECT_EQ(run(of, values), ran::eager);
  ASSERT_EQ(last.why->breaches.size(), 1U);
  EXPECT_EQ(first_breach().fact, "factor version");
  ASSERT_EQ(run(of, values), ran::captured);
  const buffer<float> moved = desk.filled({2});
  const tensor_ref before = of.weight.value;
  of.weight.value = as_tensor(moved.all());
  EXPECT_EQ(run(of, values), ran::eager);
  ASSERT_EQ(last.why->breaches.size(), 1U);
  EXPECT_EQ(first_breach().fact, "factor address");
  of.weight.value = before;
}

// What is part of the key: each value has recordings, and the report says what a call differed in.
TEST_P(contract_cases, R24_each_part_of_the_key_says_what_a_call_differed_in) {
  const auto differs_in = [&](auto&& change) {
    signature declared{"keyed"};
    const auto x = declared.in<float>("x", {any}, input_mode::direct);
    const auto mask = declared.optional_in<float>("mask", {any});
    std::uint64_t branch = 3;
    declared.key("branch", [&] { return branch; });
    const auto y = declared.out<float>("y");
    const step what{declared, [&](step_scope& run) {
                      launch(run, scale_followed, read(run[x]), write(run.make(y, run.shape(x))),
                             2.0F);
                    }};
    const buffer<float> memory = desk.filled(floats(9, 1.0F));
    view<const float> bound = memory.all().subview(0, 8);
    bool masked = true;
    replay_cache own{dev()};
    const auto go = [&] {
      if (masked) return own.run(s(), what, {x(bound), mask.from_host(values)}).how;
      return own.run(s(), what, {x(bound)}).how;
    };
    EXPECT_EQ(go(), ran::captured);
    change(bound, memory.all(), masked, branch);
    EXPECT_EQ(go(), ran::captured) << "another key is no breach";
    EXPECT_EQ(go(), ran::replayed);
    EXPECT_EQ(own.recordings(), 2U);
    return own.report().missed.front().differs;
  };
  using vf = view<const float>;
  std::vector<breach> parts =
      differs_in([](vf& bound, vf all, bool&, std::uint64_t&) { bound = all.subview(0, 4); });
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].fact, "x");
  EXPECT_EQ(parts[0].expected, "[8]");
  EXPECT_EQ(parts[0].actual, "[4]");
  parts = differs_in([](vf& bound, vf all, bool&, std::uint64_t&) { bound = all.subview(1, 8); });
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].fact, "x alignment");
  EXPECT_EQ(parts[0].expected, "aligned to 16 bytes");
  EXPECT_EQ(parts[0].actual, "aligned to 4 bytes");
  parts = differs_in([](vf&, vf, bool& masked, std::uint64_t&) { masked = false; });
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].fact, "mask");
  EXPECT_EQ(parts[0].expected, "[3]");
  EXPECT_EQ(parts[0].actual, "absent");
  parts = differs_in([](vf&, vf, bool&, std::uint64_t& branch) { branch = 4; });
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].fact, "branch");
  EXPECT_EQ(parts[0].expected, "3");
  EXPECT_EQ(parts[0].actual, "4");
  parts = differs_in([](vf& bound, vf all, bool& masked, std::uint64_t& branch) {
    bound = all.subview(1, 4);
    masked = false;
    branch = 4;
  });
  EXPECT_EQ(parts.size(), 3U);
}

TEST_P(contract_cases, a_fact_of_another_thread_that_is_set_back_meanwhile_lets_the_replay_go) {
  weighted of{desk, 2};
  int reads = 0;
  of.declared.fact("flickering", [&] { return ++reads == 3 ? 1U : 0U; });
  ASSERT_EQ(run(of, values), ran::captured);
  ASSERT_EQ(reads, 2) << "at the capture and before the first replay";
  EXPECT_EQ(run(of, values), ran::replayed);
  EXPECT_EQ(result(of), times(2, values));
}

}  // namespace
}  // namespace reprise::test
