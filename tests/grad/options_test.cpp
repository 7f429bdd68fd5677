// Options as text, slots of schedules, counts as text, and what is logged.
#include <random>
#include <set>

#include "tests/grad/support.hpp"

namespace reprise::test {
namespace {

TEST(options, are_the_same_when_they_come_back_from_their_text) {
  const std::vector<graphed_options> all{
      {},
      {.conflict = recompute{}},
      {.conflict = slots{3}, .returned = gradients::moved, .keys = 4, .record = false},
      {.conflict = slots{1}},
      {.conflict = slots{4096}, .keys = 4096},
  };
  for (const graphed_options& one : all) EXPECT_EQ(options_from(text_of(one)), one);
  EXPECT_EQ(text_of(all[2]), "on-conflict=slots:3 gradients=moved keys=4 record=no");
  EXPECT_EQ(text_of(all[0]), "on-conflict=hold gradients=cloned keys=1 record=yes");
  EXPECT_EQ(options_from(""), graphed_options{});
  EXPECT_EQ(options_from("  keys=2  record=no "), (graphed_options{.keys = 2, .record = false}));
}

TEST(options, that_cannot_be_are_refused_in_one_line_that_says_what_can) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"on-conflict=wait", "give hold, recompute or slots:K"},
      {"on-conflict=", "give hold, recompute or slots:K"},
      {"on-conflict=slots", "give hold, recompute or slots:K"},
      {"on-conflict=slots:", "'' is no number from 1"},
      {"on-conflict=slots:0", "'0' is no number from 1"},
      {"on-conflict=slots:-1", "'-1' is no number from 1"},
      {"on-conflict=slots:2x", "'2x' is no number from 1"},
      {"on-conflict=slots:99999999999999", "is no number from 1"},
      {"gradients=kept", "neither cloned nor moved"},
      {"keys=0", "'0' is no number from 1"},
      {"keys", "'' is no number from 1"},
      {"record=maybe", "neither yes nor no"},
      {"colour=red", "there is no 'colour=red'"},
      {"keys=1,record=no", "'1,record=no' is no number"},
  };
  for (const auto& [text, part] : wrong) {
    const std::string refused = message_of<usage_error>([&] { (void)options_from(text); });
    EXPECT_TRUE(has(refused, part)) << text << ": " << refused;
    EXPECT_FALSE(has(refused, "\n")) << refused;
  }
  grad_desk desk{"cpu"};
  for (const graphed_options& one :
       {graphed_options{.conflict = slots{0}}, graphed_options{.keys = 0}}) {
    const std::string refused = message_of<usage_error>([&] {
      subject{desk, op_kind::scaled, one};
    });
    EXPECT_TRUE(has(refused, "slots and keys are 1 or more, not 0")) << refused;
  }
}

TEST(a_schedule, needs_as_many_slots_as_are_pending_at_one_time) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random{seed};
    std::vector<scheduled_call> schedule;
    std::vector<int> pending;
    int next = 0;
    std::size_t most = 1;
    for (int i = 0; i < 40; ++i) {
      if (pending.empty() || random() % 2 == 0) {
        pending.push_back(next);
        schedule.push_back({false, next++});
      } else {
        const auto at = pending.begin() + static_cast<std::ptrdiff_t>(random() % pending.size());
        schedule.push_back({true, *at});
        pending.erase(at);
      }
      most = std::max(most, pending.size());
    }
    EXPECT_EQ(slots_for(schedule).count, static_cast<int>(most)) << "seed " << seed;
  }
  EXPECT_EQ(slots_for({}).count, 1);
  EXPECT_EQ(slots_for_accumulation(1).count, 1);
  EXPECT_EQ(slots_for_accumulation(7).count, 7);
  // One forward and one backward in turn, behind a warm-up of the stages that follow.
  for (int depth = 1; depth <= 5; ++depth) {
    for (int stage = 0; stage < depth; ++stage) {
      for (int batches = 1; batches <= 8; ++batches) {
        const int ahead = std::min(depth - stage - 1, batches);
        std::vector<scheduled_call> schedule;
        for (int i = 0; i < batches + ahead; ++i) {
          if (i < batches) schedule.push_back({false, i});
          if (i >= ahead) schedule.push_back({true, i - ahead});
        }
        EXPECT_EQ(slots_for_pipeline(depth, stage, batches), slots_for(schedule))
            << depth << " stages, stage " << stage << ", " << batches << " micro-batches";
      }
    }
  }
}

TEST(a_schedule, that_cannot_be_is_refused) {
  const auto refusal = [](std::vector<scheduled_call> schedule) {
    return message_of<usage_error>([&] { (void)slots_for(schedule); });
  };
  EXPECT_TRUE(has(refusal({{true, 4}}), "the backward of micro-batch 4 comes before its forward"));
  EXPECT_TRUE(has(refusal({{false, 1}, {true, 1}, {true, 1}}),
                  "the backward of micro-batch 1 comes twice"));
  EXPECT_TRUE(has(refusal({{false, 2}, {false, 2}}),
                  "the forward of micro-batch 2 comes before "
                  "the backward that it owes"));
  EXPECT_EQ(slots_for(std::vector<scheduled_call>{{false, 1}, {true, 1}, {false, 1}}).count, 1)
      << "the next window numbers its micro-batches anew";
  EXPECT_THROW((void)slots_for_accumulation(0), usage_error);
  EXPECT_THROW((void)slots_for_pipeline(0, 0, 1), usage_error);
  EXPECT_THROW((void)slots_for_pipeline(2, 2, 1), usage_error);
  EXPECT_THROW((void)slots_for_pipeline(2, -1, 1), usage_error);
  EXPECT_THROW((void)slots_for_pipeline(2, 0, 0), usage_error);
}

TEST(counts, are_a_line_for_people) {
  grad_counts counts;
  EXPECT_EQ(text_of(counts),
            "0 forwards: 0 captured, 0 shared, 0 replayed, 0 eager; 0 backwards: 0 captured, 0 "
            "replayed, 0 eager; 0 stale replays (0 by pool order), 0 us; 0 inferences");
  counts.forward_capture = 1;
  counts.forward_shared = 2;
  counts.forward_replay = 9;
  counts.backward_capture = 1;
  counts.backward_replay = 8;
  counts.stale_replay = 3;
  counts.stale_by_pool = 2;
  counts.stale_us = 41.6;
  counts.inference = 4;
  counts.eager_forward[static_cast<std::size_t>(eager_cause::hold)] = 2;
  counts.eager_forward[static_cast<std::size_t>(eager_cause::key)] = 1;
  counts.eager_backward[static_cast<std::size_t>(eager_cause::precision)] = 5;
  EXPECT_EQ(text_of(counts),
            "15 forwards: 1 captured, 2 shared, 9 replayed, 3 eager (key 1, hold 2); 14 "
            "backwards: 1 captured, 8 replayed, 5 eager (precision 5); 3 stale replays (2 by pool "
            "order), 42 us; 4 inferences");
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < eager_causes; ++i) names.insert(name_of(static_cast<eager_cause>(i)));
  EXPECT_EQ(names.size(), eager_causes);
}

TEST(counts, of_all_ops_are_prometheus_text) {
  grad_desk desk{"cpu"};
  subject one{desk, op_kind::scaled, {}, {}, "odd \"name\"\\\n"};
  subject other{desk, op_kind::scaled, {}, {}, "odd \"name\"\\\n"};
  subject quiet{desk, op_kind::rewinding, {.record = false}, {}, "quiet"};
  one.step(1);
  one.step(2);
  other.step(3);
  quiet.step(4);
  const std::string text = grad_metrics();
  const auto line = [&](std::string_view op, std::string_view how, int count) {
    return "reprise_grad_calls_total{op=\"" + std::string{op} + "\",how=\"" + std::string{how} +
           "\"} " + std::to_string(count) + "\n";
  };
  const std::string odd = "odd \\\"name\\\"\\\\ ";
  EXPECT_TRUE(has(text, line(odd, "forward_capture", 2))) << text;
  EXPECT_TRUE(has(text, line(odd, "forward_replay", 1)));
  EXPECT_TRUE(has(text, line(odd, "backward_capture", 2)));
  EXPECT_TRUE(has(text, line(odd, "backward_replay", 1)));
  EXPECT_TRUE(has(text, line(odd, "stale_replay", 0)));
  EXPECT_TRUE(has(text, line("quiet", "eager_forward_suspended", 1)));
  EXPECT_TRUE(has(text, line("quiet", "eager_backward_suspended", 1)));
  EXPECT_TRUE(has(text, "# TYPE reprise_grad_calls_total counter\n"));
  EXPECT_TRUE(has(text, "# TYPE reprise_grad_stale_microseconds_total counter\n"));
  EXPECT_TRUE(has(text, "reprise_grad_stale_microseconds_total{op=\"quiet\"} 0.0\n"));
}

class lines_of_ops : public grad_case {};

REPRISE_ON_EACH_DEVICE(lines_of_ops);

TEST_P(lines_of_ops, are_one_per_cause_and_op) {
  subject of{desk, op_kind::scaled, {}, {}, "loud"};
  subject other{desk, op_kind::rewinding, {}, {}, "other"};
  for (int i = 0; i < 3; ++i) {
    const subject::call pending = of.forward(i);
    of.step(i + 1);     // hold
    of.step(i + 2, 3);  // key
    (void)of.backward(pending, i);
    {
      const suspended here;
      of.step(i);
    }
    const subject::call made = of.forward(i);
    {
      const precision_scope now{{matrix_precision::tf32, cast_mode::none}};
      (void)of.backward(made, i);  // precision
    }
    other.step(i);
  }
  EXPECT_EQ(lines_with("op 'loud' runs eagerly"), 4);
  for (const std::string cause : {"hold", "key", "suspended", "precision"}) {
    EXPECT_EQ(lines_with("op 'loud' runs eagerly (" + cause + ")"), 1) << cause;
  }
  EXPECT_EQ(lines_with("op 'other'"), 0);
  graphed::reset();
  const subject::call pending = of.forward(1);
  of.step(2);
  EXPECT_EQ(lines_with("op 'loud' runs eagerly"), 4) << "what was said stays said";
  EXPECT_EQ(of.op().counts().forwards(), of.op().counts().backwards() + 1);
}

}  // namespace
}  // namespace reprise::test
