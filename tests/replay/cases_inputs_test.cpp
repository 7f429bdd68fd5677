// The field's cases about inputs: where they lie, what is left out, what changes from step to step.
#include "reprise/ops/attention.hpp"
#include "reprise/ops/random_uniform.hpp"
#include "reprise/replay/per_step.hpp"
#include "tests/replay/cases.hpp"

namespace reprise::test {
namespace {

class input_cases : public replay_case {
 protected:
  replay_cache cache{dev()};
};

REPRISE_ON_EACH_DEVICE(input_cases);

// y = 2 a + 3 b
class two_inputs {
 public:
  explicit two_inputs(input_mode mode)
      : a{declared.in<float>("a", {any}, mode)}, b{declared.in<float>("b", {any}, mode)} {}

  step make() {
    return step{declared, [this](step_scope& run) {
                  const view<float> made = run.make(y, run.shape(a));
                  const view<float> second = run.scratch<float>(run.shape(b));
                  launch(run, scale_followed, read(run[a]), write(made), 2.0F);
                  launch(run, scale_followed, read(run[b]), write(second), 3.0F);
                  launch(run, add_to, read<float>{view<const float>{second}}, inout<float>{made});
                }};
  }

  signature declared{"two inputs"};
  const input<float> a;
  const input<float> b;
  const output<float> y = declared.out<float>("y");
};

TEST_P(input_cases, R4_an_input_at_another_address_is_read_there) {
  for (const input_mode mode : {input_mode::staged, input_mode::direct}) {
    two_inputs of{mode};
    const step what = of.make();
    const buffer<float> first = desk.filled({1, 2});
    const buffer<float> second = desk.filled({10, 20});
    const buffer<float> third = desk.filled({100, 200});
    const auto run = [&](const buffer<float>& a, const buffer<float>& b, ran how) {
      const step_result done = cache.run(s(), what, {of.a(a.all()), of.b(b.all())});
      EXPECT_EQ(done.how, how);
      return desk.values_of(done[of.y].get());
    };
    EXPECT_EQ(run(first, second, ran::captured), (floats{32, 64}));
    EXPECT_EQ(run(third, second, ran::replayed), (floats{230, 460})) << "position 0 moved";
    EXPECT_EQ(run(first, third, ran::replayed), (floats{302, 604})) << "position 1 moved";
    EXPECT_EQ(run(second, first, ran::replayed), (floats{23, 46}));
    const view<const float> null{nullptr, 2};
    EXPECT_TRUE(has(message_of<usage_error>([&] {
                      cache.run(s(), what, {of.a(null), of.b(second.all())});
                    }),
                    "'a' is null"));
    EXPECT_TRUE(has(message_of<usage_error>([&] {
                      cache.run(s(), what, {of.a(first.all()), of.b(null)});
                    }),
                    "'b' is null"));
  }
}

TEST_P(input_cases, a_shape_of_more_elements_than_were_bound_is_refused) {
  two_inputs of{input_mode::staged};
  const buffer<float> four = desk.filled({1, 2, 3, 4});
  EXPECT_TRUE(has(message_of<usage_error>([&] { (void)of.a(four.all(), {100}); }), "4 elements"));
}

TEST_P(input_cases, R5_a_view_of_a_view_reads_what_its_base_holds_at_each_replay) {
  constexpr std::size_t length = 5;
  for (const input_mode mode : {input_mode::staged, input_mode::direct}) {
    signature declared{"padded"};
    const auto x = declared.in<float>("x", {any}, mode);
    const auto y = declared.out<float>("y");
    const buffer<float> base = desk.filled(floats(64, 0.0F));
    // One view is an input, the other is what the body refers to.
    const view<float> outer = base.all().subview(16, 24);
    const view<float> inner = outer.subview(8, length);
    const step what{declared, [&](step_scope& run) {
                      const view<float> made = run.make(y, run.shape(x));
                      launch(run, scale_followed, read(run[x]), write(made), 2.0F);
                      launch(run, add_to, read<float>{view<const float>{inner}},
                             inout<float>{made});
                    }};
    for (int i = 0; i < 11; ++i) {
      floats all(64);
      for (std::size_t j = 0; j < all.size(); ++j) {
        all[j] = static_cast<float>(100 * i) + static_cast<float>(j);
      }
      desk.set(base, all);
      const step_result done = cache.run(s(), what, {x(base.all().subview(16, length))});
      EXPECT_EQ(done.how, i == 0 ? ran::captured : ran::replayed);
      floats expected(length);
      for (std::size_t j = 0; j < length; ++j) expected[j] = 2 * all[16 + j] + all[24 + j];
      EXPECT_EQ(desk.values_of(done[y].get()), expected) << i;
    }
  }
}

TEST_P(input_cases, R15_what_is_left_out_is_never_served_with_the_last_callers_value) {
  signature declared{"optional"};
  const auto a = declared.in<float>("a", {any});
  const auto b = declared.optional_in<float>("b", {any});
  const auto y = declared.out<float>("y");
  const step what{declared, [&](step_scope& run) {
                    const view<float> made = run.make(y, run.shape(a));
                    copy(run, read(run[a]), write(made));
                    if (run.given(b)) launch(run, add_to, read(run[b]), inout<float>{made});
                  }};
  signature other{"other"};
  const auto c = other.in<float>("c", {any});
  const floats ones{1, 1};
  const floats secret{7000, 7000};
  const floats one{5};
  const auto result = [&](const step_result& done) { return desk.values_of(done[y].get()); };
  EXPECT_EQ(result(cache.run(s(), what, {a.from_host(ones), b.from_host(secret)})),
            (floats{7001, 7001}));
  const step_result alone = cache.run(s(), what, {a.from_host(ones)});
  EXPECT_EQ(alone.how, ran::captured) << "a miss";
  EXPECT_EQ(result(alone), ones) << "no byte of the old b";
  const step_result again = cache.run(s(), what, {a.from_host(ones)});
  EXPECT_EQ(again.how, ran::replayed);
  EXPECT_EQ(result(again), ones);
  EXPECT_TRUE(
      has(message_of<usage_error>([&] {
            cache.run(s(), what, {a.from_host(ones), b.from_host(secret), c.from_host(one)});
          }),
          "of another step's input"));
  EXPECT_TRUE(has(message_of<usage_error>([&] {
                    cache.run(s(), what, {a.from_host(ones), b(view<const float>{nullptr, 2})});
                  }),
                  "'b' is null"));
  binding halves = b.from_host(secret);
  halves.to.type = dtype::bf16;
  EXPECT_TRUE(has(message_of<usage_error>([&] {
                    cache.run(s(), what, {a.from_host(ones), halves});
                  }),
                  "'b' is bf16"));
  // Length 1 could be spread over both; it is another shape.
  EXPECT_TRUE(contract(declared, {a.from_host(ones), b.from_host(secret)})
                  .differences(declared, {a.from_host(ones), b.from_host(one)})
                  .front()
                  .fact == "b");
  EXPECT_EQ(cache.counts().captured, 2U);
  EXPECT_EQ(cache.counts().replayed, 1U);
  EXPECT_EQ(cache.recordings(), 2U);
}

TEST_P(input_cases, the_body_that_reads_what_a_call_left_out_is_told_to_ask) {
  signature declared{"careless"};
  const auto b = declared.optional_in<float>("b", {any});
  const step what{declared, [&](step_scope& run) { (void)run[b]; }};
  EXPECT_TRUE(has(message_of<usage_error>([&] { cache.run(s(), what, {}); }), "ask given() first"));
}

// Eight rows in the recording, five of them live; the others name no slot.
TEST_P(input_cases, R20_padding_rows_touch_nothing_that_is_live) {
  constexpr std::int64_t slots = 16;
  constexpr std::size_t rows = 8;
  const attention_shape shape{1, 1, 8, 4};
  const auto width = static_cast<std::size_t>(shape.head_dim);
  const std::size_t per_slot = static_cast<std::size_t>(shape.capacity) * width;
  const buffer<float> keys = desk.filled(floats(slots * per_slot, 0.5F));
  const buffer<float> values = desk.filled(floats(slots * per_slot, 0.25F));
  signature declared{"append"};
  const auto k = declared.in<float>("k", {rows, shape.head_dim});
  const auto where = declared.in<std::int32_t>("slots", {rows});
  const auto position = declared.in<std::int32_t>("positions", {rows});
  declared.overwrites("keys", as_tensor(keys.all()));
  declared.overwrites("values", as_tensor(values.all()));
  const step what{declared, [&](step_scope& run) {
                    launch(run, cache_append<float, float>, read(run[k]), read(run[k]),
                           read(run[where]), read(run[position]), write(keys), write(values),
                           shape);
                  }};
  floats model(slots * per_slot, 0.5F);
  const auto batch = [&](std::size_t live, std::int32_t first_slot, float value, ran how) {
    const floats in(rows * width, value);
    std::vector<std::int32_t> at(rows, static_cast<std::int32_t>(slots));  // outside: padding
    std::vector<std::int32_t> behind(rows, 0);
    for (std::size_t i = 0; i < live; ++i) {
      at[i] = first_slot + static_cast<std::int32_t>(i);
      behind[i] = 1;
      const std::size_t begin = static_cast<std::size_t>(at[i]) * per_slot + width;
      std::fill_n(model.begin() + static_cast<std::ptrdiff_t>(begin), width, value);
    }
    const step_result done =
        cache.run(s(), what, {k.from_host(in), where.from_host(at), position.from_host(behind)});
    EXPECT_EQ(done.how, how);
    EXPECT_EQ(desk.values_of(keys), model);
  };
  batch(8, 8, 7, ran::captured);
  batch(5, 0, 9, ran::replayed);  // the rows 5 to 7 of the batch before are not used again
  batch(8, 3, 11, ran::replayed);
  batch(1, 15, 13, ran::replayed);
}

TEST_P(input_cases, R21_lengths_that_are_inputs_are_those_of_each_replay) {
  constexpr std::size_t most = 6;
  signature declared{"lengths"};
  const auto mask = declared.in<float>("mask", {most});
  const auto y = declared.out<float>("y");
  const buffer<float> table = desk.filled({1, 2, 3, 4, 5, 6});
  const step what{declared, [&](step_scope& run) {
                    // The sum of as many entries as the mask says.
                    launch(run, matmul<float, float>, read(run[mask]), read(table),
                           write(run.make(y, {1})), 1, most);
                  }};
  for (std::size_t i = 0; i < 21; ++i) {
    const std::size_t length = i * 5 % (most + 1);
    floats in(most, 0.0F);
    std::fill_n(in.begin(), length, 1.0F);
    const step_result done = cache.run(s(), what, {mask.from_host(in)});
    EXPECT_EQ(done.how, i == 0 ? ran::captured : ran::replayed);
    EXPECT_EQ(desk.values_of(done[y].get()), floats{static_cast<float>(length * (length + 1) / 2)})
        << i;
  }
}

TEST_P(input_cases, R21_a_per_step_value_that_a_body_reads_from_the_host_refuses_the_recording) {
  per_step<float> rate{"learning rate", 2.0F};
  signature declared{"baking"};
  const auto x = declared.in<float>("x", {any});
  const auto y = declared.out<float>("y");
  const step what{declared, [&](step_scope& run) {
                    launch(run, scale_here, read(run[x]), write(run.make(y, run.shape(x))), rate);
                  }};
  const floats ones{1, 1};
  for (const float now : {2.0F, 3.0F, 4.0F}) {
    rate.set(now);
    const step_result done = cache.run(s(), what, {x.from_host(ones)});
    ASSERT_EQ(done.how, ran::eager);
    EXPECT_EQ(done.why->rule, "capture failed");
    EXPECT_TRUE(has(done.why->text(), "'learning rate'")) << done.why->text();
    EXPECT_EQ(desk.values_of(done[y].get()), times(now, ones)) << "each run has its own";
  }
  EXPECT_EQ((*desk.calls)[seam_call::capture], 0U) << "the warm-up has found it";
}

// The two remedies of that refusal, executed.
TEST_P(input_cases, R21_a_per_step_value_is_an_input_or_read_in_a_break) {
  per_step<float> rate{"learning rate", 2.0F};
  const floats ones{1, 1};
  signature bound{"bound"};
  const auto scale = bound.in<float>("rate", {1});
  const auto x = bound.in<float>("x", {any, 1});
  const auto y = bound.out<float>("y");
  const step with_input{bound, [&](step_scope& run) {
                          launch(run, matmul<float, float>, read(run[x]), read(run[scale]),
                                 write(run.make(y, run.shape(x))), 1, 1);
                        }};
  signature broken{"broken"};
  const auto of = broken.in<float>("x", {any});
  const auto z = broken.out<float>("z");
  const step with_break{broken, [&](step_scope& run) {
                          const view<const float> from = run[of];
                          const view<float> made = run.make(z, run.shape(of));
                          run.eagerly("rate", [&rate, from, made](stream_ref on) {
                            launch(on, scale_here, read(from), write(made), rate);
                          });
                        }};
  for (const float now : {2.0F, 3.0F, 4.0F}) {
    rate.set(now);
    const floats word{rate.get()};
    const ran how = now == 2.0F ? ran::captured : ran::replayed;
    const step_result first =
        cache.run(s(), with_input, {scale.from_host(word), x.from_host(ones)});
    EXPECT_EQ(first.how, how);
    EXPECT_EQ(desk.values_of(first[y].get()), times(now, ones));
    const step_result second = cache.run(s(), with_break, {of.from_host(ones)});
    EXPECT_EQ(second.how, how);
    EXPECT_EQ(desk.values_of(second[z].get()), times(now, ones));
  }
}

class drawing {
 public:
  explicit drawing(philox_counter& counter) { declared.random(counter); }
  step make() {
    return step{declared, [this](step_scope& run) {
                  const random_base from = run.draws(uniform_draws(10));
                  launch(run, random_uniform, read(from.words), write(run.make(y, {10})),
                         from.offset);
                }};
  }
  signature declared{"drawing"};
  const output<float> y = declared.out<float>("y");
};

TEST_P(input_cases, R22_replays_draw_what_eager_runs_from_the_same_state_draw) {
  const auto sequence = [&](bool record, std::uint64_t seed) {
    philox_counter counter{seed};
    drawing of{counter};
    const step what = of.make();
    replay_cache own{dev(), {.record = record}};
    std::vector<floats> all;
    for (int i = 0; i < 5; ++i) {
      all.push_back(desk.values_of(own.run(s(), what, {})[of.y].get()));
    }
    EXPECT_EQ(own.counts().replayed, record ? 4U : 0U);
    counter.set(seed, 0);  // reseeded: the sequence again
    all.push_back(desk.values_of(own.run(s(), what, {})[of.y].get()));
    EXPECT_EQ(counter.next(), uniform_draws(10));
    return all;
  };
  const auto replayed = sequence(true, 11);
  EXPECT_EQ(replayed, sequence(false, 11));
  EXPECT_EQ(replayed[0], replayed[5]);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_NE(replayed[i], replayed[i - 1]);
  EXPECT_NE(sequence(true, 12)[0], replayed[0]) << "a new seed is heard";
}

TEST_P(input_cases, R22_a_step_that_draws_nothing_launches_its_own_nodes_alone) {
  two_inputs of{input_mode::staged};
  const step what = of.make();
  const buffer<float> in = desk.filled({1, 2});
  cache.run(s(), what, {of.a(in.all()), of.b(in.all())});
  EXPECT_EQ(cache.report().recordings.front().nodes, 3U);
}

}  // namespace
}  // namespace reprise::test
