// The field's cases about options that leak, or that one kind of op ignores: G5 and G6.
#include "reprise/device/faulty.hpp"
#include "tests/grad/op_rows.hpp"
#include "tests/grad/support.hpp"

namespace reprise::test {
namespace {

class option_cases : public grad_case {};

REPRISE_ON_EACH_DEVICE(option_cases);

constexpr precision rounded{matrix_precision::full, cast_mode::bf16};

TEST_P(option_cases, G5_what_one_op_is_recorded_under_does_not_reach_the_next) {
  subject a{
      desk, op_kind::scaled, {.conflict = recompute{}, .returned = gradients::moved}, {}, "a"};
  subject b{desk, op_kind::scaled, {}, {}, "b"};
  for (int i = 0; i < 3; ++i) {
    {
      const precision_scope now{rounded};
      a.step(i);
    }
    EXPECT_EQ(precision_now(), precision{});
    b.step(i);
    {
      const precision_scope now{rounded};
      a.step(i + 10);
    }
    // Each step reads the weights that are there.
    for (subject* one : {&a, &b}) {
      one->descend(0.01F);
      one->drop_gradients();
    }
  }
  EXPECT_EQ(a.counts(),
            "forward_capture 1, forward_replay 5, backward_capture 1, backward_replay 5");
  EXPECT_EQ(b.counts(),
            "forward_capture 1, forward_replay 2, backward_capture 1, backward_replay 2");
  EXPECT_EQ(b.op().options(), graphed_options{});
}

TEST_P(option_cases, G5_nor_does_a_recording_that_fails_half_way) {
  const auto plan = std::make_shared<fault_plan>();
  grad_desk at{GetParam(), [&](auto bare) { return faulty(std::move(bare), plan); }};
  subject a{at, op_kind::scaled, {}, {}, "a"};
  subject b{at, op_kind::scaled, {}, {}, "b"};
  {
    const precision_scope now{rounded};
    a.at_call = [&] { plan->fail_call(seam_call::instantiate, 1); };
    const subject::call made = a.forward(1);
    EXPECT_TRUE(plan->fired());
    a.at_call = nullptr;
    EXPECT_EQ(made.result.how, ran::eager);
    a.expect_output(made);
    a.expect_gradients(made, a.backward(made, 1), 1);
  }
  EXPECT_EQ(precision_now(), precision{});
  EXPECT_FALSE(stream_ref{at.work}.capturing());
  b.step(2);
  b.step(3);
  EXPECT_EQ(b.counts(),
            "forward_capture 1, forward_replay 1, backward_capture 1, backward_replay 1");
  EXPECT_EQ(a.counts(), "forward capture_failed 1, backward capture_failed 1");
}

class option_table : public grad_case {
 protected:
  // Each kind of op, with its row.
  template <class Each>
  void for_each_kind(const Each& each) {
    for (const op_kind kind : all_kinds) {
      SCOPED_TRACE(name_of(kind));
      const auto found = op_rows().find(name_of(kind));
      ASSERT_NE(found, op_rows().end()) << "an op without a row: say what its options act on";
      each(kind, found->second);
    }
  }
};

REPRISE_ON_EACH_DEVICE(option_table);

TEST_P(option_table, G6_every_op_has_a_row) {
  EXPECT_EQ(op_rows().size(), all_kinds.size());
  for_each_kind([&](op_kind kind, const op_row& has_row) {
    subject of{desk, kind};
    EXPECT_EQ(of.inputs.size(), has_row.gradients);
  });
}

TEST_P(option_table, G6_every_op_answers_a_conflict_as_its_options_say) {
  for_each_kind([&](op_kind kind, const op_row&) {
    const auto counts = [&](const on_conflict& policy) {
      subject of{desk, kind, {.conflict = policy}};
      const subject::call first = of.forward(1);
      const subject::call second = of.forward(2);
      of.expect_gradients(first, of.backward(first, 1), 1);
      of.expect_gradients(second, of.backward(second, 2), 2);
      of.expect_state();
      return of.counts();
    };
    EXPECT_EQ(counts(hold{}),
              "forward_capture 1, backward_capture 1, forward hold 1, backward hold 1");
    EXPECT_EQ(counts(recompute{}),
              "forward_capture 1, forward_replay 1, backward_capture 1, backward_replay 1, "
              "stale_replay 2");
    EXPECT_EQ(counts(slots{2}), "forward_capture 2, backward_capture 2");
  });
}

TEST_P(option_table, G6_every_op_returns_gradients_as_its_options_say) {
  for_each_kind([&](op_kind kind, const op_row&) {
    for (const gradients returned : {gradients::cloned, gradients::moved}) {
      subject of{desk, kind, {.returned = returned}};
      of.step(1);
      of.step(2);
      const subject::call made = of.forward(3);
      (void)of.backward(made, 3);
      EXPECT_EQ(of.calls(seam_call::copy), 0U) << "what is cloned is left by a node";
      EXPECT_EQ(of.calls(seam_call::launch), 1U);
    }
  });
}

TEST_P(option_table, G6_every_op_records_as_many_keys_as_its_options_say) {
  for_each_kind([&](op_kind kind, const op_row&) {
    const auto counts = [&](int keys) {
      subject of{desk, kind, {.keys = keys}};
      for (int i = 0; i < 2; ++i) {
        of.step(i, 2);
        of.step(i, 3);
      }
      return of.counts();
    };
    EXPECT_EQ(counts(1),
              "forward_capture 1, forward_replay 1, backward_capture 1, backward_replay 1, "
              "forward key 2, backward key 2");
    EXPECT_EQ(counts(2),
              "forward_capture 2, forward_replay 2, backward_capture 2, backward_replay 2");
  });
}

TEST_P(option_table, G6_every_op_records_nothing_where_its_options_say_so) {
  for_each_kind([&](op_kind kind, const op_row&) {
    subject of{desk, kind, {.record = false}};
    const std::uint64_t captures = (*desk.calls)[seam_call::capture];
    of.step(1);
    of.step(2);
    EXPECT_EQ((*desk.calls)[seam_call::capture], captures);
    EXPECT_EQ(of.counts(), "forward suspended 2, backward suspended 2");
  });
}

TEST_P(option_table, G6_every_op_forms_the_gradients_that_are_wanted_and_no_others) {
  for_each_kind([&](op_kind kind, const op_row& has_row) {
    for (const bool record : {true, false}) {
      SCOPED_TRACE(record ? "recorded" : "eager");
      subject of{desk, kind, {.record = record}};
      of.step(1);
      for (int round = 0; round < 2; ++round) {
        for (std::size_t i = 0; i < has_row.gradients; ++i) {
          const subject::call made = of.forward(2);
          const wanted one = wanted::only(of.inputs[i]);
          const grad_result got = of.backward(made, 2, one);
          of.expect_gradients(made, got, 2, one);
          for (std::size_t other = 0; other < has_row.gradients; ++other) {
            EXPECT_EQ(got.gradients[other] != nullptr, other == i);
          }
          of.expect_state();
        }
        const grad_result none = of.backward(of.forward(3), 3, wanted::parameters_only());
        for (const auto& held : none.gradients) EXPECT_EQ(held, nullptr);
        const std::string refused = message_of<usage_error>([&] { (void)none[of.inputs[0]]; });
        EXPECT_TRUE(has(refused, "was not formed")) << refused;
        of.expect_state();
      }
    }
  });
}

TEST_P(option_table, G6_every_op_leaves_parameters_alone_where_they_are_not_wanted) {
  for_each_kind([&](op_kind kind, const op_row&) {
    for (const bool record : {true, false}) {
      SCOPED_TRACE(record ? "recorded" : "eager");
      subject of{desk, kind, {.record = record}};
      wanted inputs_only;
      inputs_only.parameters = false;
      for (int i = 0; i < 3; ++i) {
        const subject::call made = of.forward(i);
        of.expect_gradients(made, of.backward(made, i, inputs_only), i);
        of.expect_state();
        for (const trained_weight& one : of.weights) {
          EXPECT_BITS(desk.values_of(one.gradient.all()), floats(row, 99.0F));
        }
      }
      of.step(4);
      const subject::call made = of.forward(5);
      of.expect_gradients(made, of.backward(made, 5, inputs_only), 5);
      of.expect_state();
    }
  });
}

TEST_P(option_table, G6_every_op_has_the_precision_in_its_key) {
  for_each_kind([&](op_kind kind, const op_row& has_row) {
    const precision other{matrix_precision::tf32, cast_mode::bf16};
    subject of{desk, kind};
    const subject::call plain = of.forward(1);
    of.expect_gradients(plain, of.backward(plain, 1), 1);
    const precision_scope now{other};
    const subject::call precise = of.forward(1);
    EXPECT_EQ(precise.result.how, ran::eager);
    EXPECT_EQ(precise.result.why->rule, "key");
    of.expect_output(precise);
    of.expect_gradients(precise, of.backward(precise, 1), 1);
    of.expect_state();
    if (kind != op_kind::noisy) {  // which draws others
      EXPECT_EQ(same_bits(desk.values_of(precise.result[of.outputs[0]].get()),
                          desk.values_of(plain.result[of.outputs[0]].get())),
                !has_row.follows_precision);
    }
    EXPECT_EQ(of.counts(), "forward_capture 1, backward_capture 1, forward key 1, backward key 1");
  });
}

TEST_P(option_table, G6_every_op_has_the_products_of_now_in_its_backward) {
  for_each_kind([&](op_kind kind, const op_row&) {
    subject of{desk, kind};
    of.step(1);
    const subject::call made = of.forward(2);
    const precision_scope now{{matrix_precision::tf32, cast_mode::none}};
    const grad_result got = of.backward(made, 2);
    EXPECT_EQ(got.how, ran::eager);
    EXPECT_EQ(got.why->rule, "precision");
    of.expect_gradients(made, got, 2);
    of.expect_state();
  });
}

}  // namespace
}  // namespace reprise::test
