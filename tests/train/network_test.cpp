// graphed_network, and the three parts together: off they capture nothing; on they replay; both
// have the bits of a plain run. What is not of the recording runs eagerly and retires nothing.
#include "reprise/nn/gelu.hpp"
#include "tests/train/support.hpp"

namespace reprise::test {
namespace {

class graphed_networks : public training_case {
 protected:
  // Both take it, and must give the same.
  void both(graphed_model& model, plain_model& plain, const micro_batch& of) {
    expect_same(model.run(of), plain.run(of));
    expect_same_weights(model.own, plain.own);
  }
};

REPRISE_ON_EACH_DEVICE(graphed_networks);

TEST_P(graphed_networks, that_are_off_capture_nothing_and_have_the_bits_of_a_plain_run) {
  plain_model plain{desk};
  graphed_model model{desk, {}};
  training_run run{model.parts()};
  const calls_since before{*desk.calls};
  run.start(s());
  run.batch_start();
  EXPECT_EQ(before.all(), 0U) << "events of parts that are off call no device";
  for (unsigned i = 0; i < 4; ++i) {
    run.batch_start();
    both(model, plain, {.seed = i});
  }
  for (const seam_call call : {seam_call::capture, seam_call::instantiate, seam_call::launch}) {
    EXPECT_EQ(before[call], 0U) << name_of(call);
  }
  const calls_since behind{*desk.calls};
  run.end();
  EXPECT_EQ(behind.all(), 0U);
  EXPECT_EQ(model.trunk.state(), part_state::off);
  EXPECT_EQ(told(model.trunk.counts()), "forward suspended 4, backward suspended 4");
  EXPECT_EQ(told(model.heads.counts(0)), "forward suspended 4, backward suspended 4");
  EXPECT_EQ(told(model.loss.counts()), "eager 4");
  EXPECT_TRUE(log.empty()) << log.front();
}

TEST_P(graphed_networks, that_are_on_replay_with_the_bits_of_a_plain_run) {
  for (const gradients returned : {gradients::moved, gradients::cloned}) {
    plain_model plain{desk};
    graphed_model model{desk, {.on = true, .returned = returned}};
    training_run run{model.parts()};
    run.start(s());
    EXPECT_EQ(model.trunk.state(), part_state::ready);
    for (unsigned i = 0; i < 6; ++i) {
      run.batch_start();
      both(model, plain, {.seed = i});
      if (i % 3 != 2) continue;
      model.own.descend();
      plain.own.descend();
      model.own.set.drop_gradients();
      plain.own.set.drop_gradients();
    }
    EXPECT_EQ(told(model.trunk.counts()),
              "forward_capture 1, forward_replay 5, backward_capture 1, backward_replay 5, "
              "replays_inside_windows 4");
    for (const std::size_t i : {0U, 1U}) {
      EXPECT_EQ(told(model.heads.counts(i)), told(model.trunk.counts()));
    }
    EXPECT_EQ(told(model.loss.counts()), "captured 1, replayed 5");
    run.end();
    EXPECT_TRUE(log.empty()) << log.front();
  }
}

TEST_P(graphed_networks, run_eagerly_until_a_run_starts) {
  plain_model plain{desk};
  graphed_model model{desk};
  EXPECT_EQ(model.trunk.state(), part_state::cleared);
  const calls_since before{*desk.calls};
  for (unsigned i = 0; i < 2; ++i) both(model, plain, {.seed = i});
  EXPECT_EQ(before[seam_call::capture], 0U);
  EXPECT_EQ(told(model.trunk.counts()), "forward suspended 2, backward suspended 2");
}

TEST_P(graphed_networks, run_other_shapes_and_inference_eagerly_and_replay_on) {
  plain_model plain{desk};
  graphed_model model{desk};
  training_run run{model.parts()};
  run.start(s());
  for (unsigned i = 0; i < 2; ++i) both(model, plain, {.seed = i});
  both(model, plain, {.seed = 2, .rows = 3});
  const auto seen = model.infer({.seed = 3, .rows = 4});
  const auto expected = plain.infer({.seed = 3, .rows = 4});
  for (const std::size_t i : {0U, 1U}) EXPECT_BITS(seen[i], expected[i]);
  both(model, plain, {.seed = 4});
  EXPECT_EQ(model.trunk.state(), part_state::ready);
  EXPECT_EQ(told(model.trunk.counts()),
            "forward_capture 1, forward_replay 2, backward_capture 1, backward_replay 2, inference "
            "1, forward key 1, backward key 1, replays_inside_windows 2");
  EXPECT_EQ(told(model.loss.counts()), "captured 1, replayed 2, eager 1");
  EXPECT_EQ(lines_with("is retired"), 0);
}

TEST_P(graphed_networks, hold_their_frame_for_a_backward_that_is_owed) {
  plain_model plain{desk};
  graphed_model model{desk};
  training_run run{model.parts()};
  run.start(s());
  both(model, plain, {.seed = 0});
  auto first = model.begin({.seed = 1});
  auto second = model.begin({.seed = 2});
  model.forward(first);
  model.forward(second);
  const auto plain_first = plain.forward({.seed = 1});
  const auto plain_second = plain.forward({.seed = 2});
  for (auto* const one : {&second, &first}) model.compute_loss(*one);
  expect_same(model.backward(second), plain.backward(plain_second));
  expect_same(model.backward(first), plain.backward(plain_first));
  expect_same_weights(model.own, plain.own);
  EXPECT_EQ(told(model.trunk.counts()),
            "forward_capture 1, forward_replay 1, backward_capture 1, backward_replay 1, forward "
            "hold 1, backward hold 1, replays_inside_windows 1");
}

TEST_P(graphed_networks, release_at_a_batch_start_what_never_had_its_backward) {
  plain_model plain{desk};
  graphed_model model{desk};
  training_run run{model.parts()};
  run.start(s());
  both(model, plain, {.seed = 0});
  // A step that returned no loss, whose calls somebody still keeps.
  run.batch_start();
  auto lost = model.begin({.seed = 1});
  model.forward(lost);
  const auto plain_lost = plain.forward({.seed = 1});
  run.batch_start();
  both(model, plain, {.seed = 2});
  EXPECT_EQ(told(model.trunk.counts()),
            "forward_capture 1, forward_replay 2, backward_capture 1, backward_replay 1, "
            "replays_inside_windows 1");
  EXPECT_EQ(told(model.heads.counts(1)), told(model.trunk.counts()));
  // One that comes all the same runs its forward again.
  model.compute_loss(lost);
  expect_same(model.backward(lost), plain.backward(plain_lost));
  expect_same_weights(model.own, plain.own);
  EXPECT_EQ(model.trunk.counts().calls.stale_replay, 1U);
  EXPECT_EQ(model.heads.counts(0).calls.stale_replay, 1U);
  both(model, plain, {.seed = 3});
}

TEST_P(graphed_networks, refuse_the_calls_of_others) {
  graphed_model model{desk};
  graphed_model other{desk};
  const micro_batch of{.seed = 1};
  auto now = model.begin(of);
  model.forward(now);
  EXPECT_EQ(message_of<usage_error>([&] { other.trunk.backward(s(), *now.trunk, now.trunk->y); }),
            "module 'trunk': the backward is of no forward of it; give the call that its own "
            "forward returned");
  EXPECT_EQ(message_of<usage_error>(
                [&] { model.heads.backward(s(), 0, *now.heads[1], now.heads[1]->y); }),
            "module 'class': the backward is of no forward of it; give the call that its own "
            "forward returned");
  EXPECT_EQ(message_of<usage_error>([&] { model.heads.forward(s(), 2, now.trunk->y); }),
            "graphed heads 'class, mask': there is no group 2; they count from 0 to 1");
  EXPECT_EQ(message_of<usage_error>([&] {
              graphed_heads{{}, desk.budget};
            }),
            "graphed heads: there is no group; give one at least");
}

}  // namespace
}  // namespace reprise::test
