// graphed_network, and the three parts together: off they capture nothing; on they replay; both
// have the bits of a plain run.
#include "tests/train/support.hpp"

namespace reprise::test {
namespace {

class graphed_networks : public training_case {};

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
    expect_same(model.run({.seed = i}), plain.run({.seed = i}));
    expect_same_weights(model.own, plain.own);
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
  plain_model plain{desk};
  graphed_model model{desk};
  training_run run{model.parts()};
  run.start(s());
  EXPECT_EQ(model.trunk.state(), part_state::ready);
  for (unsigned i = 0; i < 6; ++i) {
    run.batch_start();
    expect_same(model.run({.seed = i}), plain.run({.seed = i}));
    expect_same_weights(model.own, plain.own);
    if (i % 3 == 2) {
      model.own.descend();
      plain.own.descend();
      model.own.set.drop_gradients();
      plain.own.set.drop_gradients();
    }
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

}  // namespace
}  // namespace reprise::test
