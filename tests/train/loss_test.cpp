// graphed_loss: one recording of a loss and its gradient; terms that are left out, what a term
// keeps between calls, a first replay that fails, and what is refused.
#include "reprise/ops/multiply_by.hpp"
#include "reprise/ops/squared_error.hpp"
#include "reprise/train/loss_workspace.hpp"
#include "tests/support/lending_stream.hpp"
#include "tests/train/support.hpp"

namespace reprise::test {
namespace {

constexpr std::int64_t width = 3;

// squared_error by way of a copy in memory that lasts from call to call.
class keeping_error {
  signature declared_{"keeping_error"};

 public:
  explicit keeping_error(loss_workspace& kept) : kept_{&kept} {
    declared_.fact("workspace", kept.version());
  }

  const input<float> x = declared_.in<float>("x", {any, any});
  const input<float> target = declared_.in<float>("target", {any, any});
  const output<float> loss = declared_.out<float>("loss");

  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const {
    const view<const float> from = run[x];
    const view<float> kept = kept_->room<float>(run, from.size());
    launch(run, multiply_by, read<float>{from}, write<float>{kept}, 1.0F);
    launch(run, squared_error, read<float>{kept}, read<float>{run[target]},
           write<float>{run.make(loss, {1})});
  }
  void backward(backward_scope& run) const {
    if (!run.wants(x)) return;
    launch(run, squared_error_grad, read<float>{run.saved(x)}, read<float>{run.saved(target)},
           read<float>{run.grad(loss)}, write<float>{run.grad(x)});
  }

 private:
  loss_workspace* kept_;
};

// Its body refuses what it is given, until it is told not to.
class choosy_error {
  signature declared_{"choosy_error"};

 public:
  explicit choosy_error(const bool& refuses) : refuses_{&refuses} {}

  const input<float> x = declared_.in<float>("x", {any, any});
  const input<float> target = declared_.in<float>("target", {any, any});
  const output<float> loss = declared_.out<float>("loss");

  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const {
    if (*refuses_) throw usage_error{"choosy_error: it does not like these"};
    launch(run, squared_error, read<float>{run[x]}, read<float>{run[target]},
           write<float>{run.make(loss, {1})});
  }
  void backward(backward_scope& run) const {
    launch(run, squared_error_grad, read<float>{run.saved(x)}, read<float>{run.saved(target)},
           read<float>{run.grad(loss)}, write<float>{run.grad(x)});
  }

 private:
  const bool* refuses_;
};

class graphed_losses : public training_case {
 protected:
  // One call of a loss of squared errors on [rows, width] numbers, against plain launches.
  void call_of(graphed_loss& loss, std::int64_t rows, unsigned seed, float weight = 1.0F) {
    const auto count = static_cast<std::size_t>(rows * width);
    const tensor<float> x = desk.made(numbers(count, seed), {rows, width});
    const tensor<float> target = desk.made(numbers(count, seed + 50), {rows, width});
    const tensor<float> scale = desk.made({0.5F}, {1});
    const auto made = loss(s(), {x}, {operand{loss.targets<float>(0), target}}, scale);
    const tensor<float> term = make_tensor<float>(desk.memory, {1}, s());
    const tensor<float> dx = make_tensor<float>(desk.memory, {rows, width}, s());
    const tensor<float> dloss = desk.made({weight * 0.5F}, {1});
    const lending_stream plain{s()};
    launch(plain, squared_error, read<float>{x.get()}, read<float>{target.get()},
           write<float>{term.get()});
    launch(plain, squared_error_grad, read<float>{x.get()}, read<float>{target.get()},
           read<float>{dloss.get()}, write<float>{dx.get()});
    EXPECT_BITS(desk.host(made.terms[0]), desk.host(term));
    EXPECT_BITS(desk.host(made.loss), floats{weight * desk.host(term)[0]});
    EXPECT_BITS(desk.host(made.gradients[0]), desk.host(dx));
    EXPECT_EQ(made.gradients[0].shape(), (dims{rows, width}));
  }
};

REPRISE_ON_EACH_DEVICE(graphed_losses);

TEST_P(graphed_losses, leave_out_the_terms_that_have_no_predictions) {
  plain_model plain{desk};
  graphed_model model{desk};
  training_run run{model.parts()};
  run.start(s());
  // What is recorded first is replayed; calls with other terms run eagerly.
  const std::array<std::array<bool, 2>, 5> given{
      {{true, true}, {false, true}, {true, true}, {true, false}, {true, true}}};
  for (unsigned i = 0; i < given.size(); ++i) {
    const micro_batch of{.seed = i, .has_target = given[i]};
    auto now = model.begin(of);
    model.forward(now);
    model.compute_loss(now);
    for (const std::size_t term : {0U, 1U}) {
      EXPECT_EQ(static_cast<bool>(now.loss->gradients[term]), given[i][term]);
      EXPECT_EQ(static_cast<bool>(now.loss->terms[term]), given[i][term]);
    }
    expect_same(model.backward(now), plain.run(of));
    expect_same_weights(model.own, plain.own);
  }
  EXPECT_EQ(told(model.loss.counts()), "captured 1, replayed 2, eager 2");
  EXPECT_EQ(model.heads.counts(0).empty_targets, 1U);
  EXPECT_EQ(model.heads.counts(1).empty_targets, 1U);
  EXPECT_EQ(told(model.heads.counts(0)),
            "forward_capture 1, forward_replay 3, backward_capture 1, backward_replay 3, forward "
            "suspended 1, empty_targets 1, replays_inside_windows 3");
}

TEST_P(graphed_losses, evaluate_eagerly_and_without_gradients) {
  graphed_loss loss{{{"error", loss_of(nn::squared_error{}), 2.0F}}, desk.budget, {.on = true}};
  training_run run{{&loss}};
  run.start(s());
  for (unsigned i = 0; i < 2; ++i) call_of(loss, 4, i, 2.0F);
  const tensor<float> x = desk.made(numbers(6, 1), {2, width});
  const tensor<float> target = desk.made(numbers(6, 2), {2, width});
  const auto made = loss.infer(s(), {x}, {operand{loss.targets<float>(0), target}});
  const tensor<float> term = make_tensor<float>(desk.memory, {1}, s());
  launch(lending_stream{s()}, squared_error, read<float>{x.get()}, read<float>{target.get()},
         write<float>{term.get()});
  EXPECT_BITS(desk.host(made.loss), floats{2.0F * desk.host(term)[0]});
  EXPECT_FALSE(made.gradients[0]);
  call_of(loss, 4, 5, 2.0F);
  EXPECT_EQ(told(loss.counts()), "captured 1, replayed 2, eager 1");
}

TEST_P(graphed_losses, follow_a_scale_that_changes_and_that_lies_elsewhere) {
  plain_model plain{desk};
  graphed_model model{desk};
  training_run run{model.parts()};
  run.start(s());
  unsigned seed = 0;
  for (const float scale : {1024.0F, 512.0F, 0.25F, 1024.0F}) {
    const micro_batch of{.seed = seed++, .scale = scale};
    expect_same(model.run(of), plain.run(of));
  }
  EXPECT_EQ(model.loss.counts().replayed, 3U);
}

TEST_P(graphed_losses, record_anew_when_what_a_term_keeps_has_grown) {
  loss_workspace kept{desk.memory};
  const keeping_error op{kept};
  graphed_loss loss{
      {{"kept", loss_op{op, op.x, op.target, op.loss}, 1, &kept}}, desk.budget, {.on = true}};
  training_run run{{&loss}};
  run.start(s());
  call_of(loss, 4, 0);  // which sizes it
  for (unsigned i = 1; i < 4; ++i) call_of(loss, 4, i);
  EXPECT_EQ(told(loss.counts()), "captured 1, replayed 2, eager 1");
  call_of(loss, 2, 4);  // fits
  call_of(loss, 4, 5);
  EXPECT_EQ(told(loss.counts()), "captured 1, replayed 3, eager 2");
  const std::size_t before = kept.bytes();
  call_of(loss, 400, 6);
  EXPECT_GT(kept.bytes(), before);
  EXPECT_EQ(told(loss.counts()), "captured 1, replayed 3, eager 3, clears 1");
  for (unsigned i = 7; i < 9; ++i) call_of(loss, 4, i);
  EXPECT_EQ(told(loss.counts()), "captured 2, replayed 4, eager 3, clears 1");
  EXPECT_EQ(loss.state(), part_state::ready);
  run.end();
  EXPECT_TRUE(log.empty()) << log.front();
}

TEST_P(graphed_losses, that_share_what_they_keep_see_that_the_other_let_it_grow) {
  loss_workspace kept{desk.memory};
  const keeping_error op{kept};
  const keeping_error twin{kept};
  graphed_loss one{
      {{"kept", loss_op{op, op.x, op.target, op.loss}, 1, &kept}}, desk.budget, {.on = true}};
  graphed_loss other{{{"twin", loss_op{twin, twin.x, twin.target, twin.loss}, 1, &kept}},
                     desk.budget,
                     {.on = true}};
  training_run run{{&one, &other}};
  run.start(s());
  for (unsigned i = 0; i < 3; ++i) {
    call_of(one, 4, i);
    call_of(other, 4, i);
  }
  call_of(other, 300, 3);
  for (unsigned i = 4; i < 6; ++i) call_of(one, 4, i);
  EXPECT_EQ(told(one.counts()), "captured 2, replayed 2, eager 1, clears 1");
}

TEST_P(graphed_losses, keep_what_they_keep_in_eager_runs_alone) {
  loss_workspace kept{desk.memory};
  const keeping_error op{kept};
  replay_cache cache{dev()};
  signature declared{"recorder"};
  const input<float> x = declared.in<float>("x", {any, width});
  std::string refused;
  const step what{declared, [&](step_scope& run) {
                    try {
                      static_cast<void>(kept.room<float>(run, 64));
                    } catch (const usage_error& failed) {
                      refused = failed.what();
                    }
                    static_cast<void>(run[x]);
                  }};
  const floats values = numbers(3, 1);
  (void)cache.run(s(), what, {x.from_host(values)});
  EXPECT_EQ(refused,
            "a loss workspace of 0 bytes would grow to 256 in a body that is being recorded; run "
            "the loss once eagerly with a batch of that size");
}

TEST_P(graphed_losses, run_eagerly_where_their_first_replay_fails) {
  const reports quiet;
  graphed_loss loss{{{"error", loss_of(nn::squared_error{})}}, desk.budget, {.on = true}};
  training_run run{{&loss}};
  run.start(s());
  call_of(loss, 4, 0);
  desk.faults->fail_call(seam_call::launch, 1);
  call_of(loss, 4, 1);
  EXPECT_TRUE(desk.faults->fired());
  EXPECT_EQ(told(loss.counts()), "captured 1, eager 1, clears 1");
  EXPECT_EQ(lines_with("graphed loss 'error': its first replay failed, and the call ran eagerly"),
            1);
  EXPECT_EQ(lines_with("injected fault"), 1);
  for (unsigned i = 2; i < 4; ++i) call_of(loss, 4, i);
  EXPECT_EQ(told(loss.counts()), "captured 2, replayed 1, eager 1, clears 1");
  // Behind a replay that went well a failure is the caller's to hear.
  desk.faults->fail_call(seam_call::launch, 1);
  EXPECT_THROW(call_of(loss, 4, 4), error);
  call_of(loss, 4, 5);
  EXPECT_EQ(loss.counts().captured, 2U);
}

TEST_P(graphed_losses, try_a_first_replay_four_times_in_a_run) {
  const reports quiet;
  graphed_loss loss{{{"error", loss_of(nn::squared_error{})}}, desk.budget, {.on = true}};
  training_run run{{&loss}};
  for (int again = 0; again < 2; ++again) {
    run.start(s());
    const std::uint64_t before = loss.counts().captured;
    for (unsigned i = 0; i < 6; ++i) {
      call_of(loss, 4, 2 * i);
      desk.faults->fail_call(seam_call::launch, 1);
      call_of(loss, 4, 2 * i + 1);
      desk.faults->fail_call(0);
    }
    EXPECT_EQ(loss.counts().captured, before + 4);
  }
  EXPECT_EQ(lines_with("its first replay failed"), 1) << "once";
}

TEST_P(graphed_losses, throw_what_the_caller_has_done_wrong) {
  graphed_loss loss{
      {{"class", loss_of(nn::softmax_cross_entropy{})}, {"error", loss_of(nn::squared_error{})}},
      desk.budget,
      {.on = true}};
  training_run run{{&loss}};
  run.start(s());
  const tensor<float> x = desk.made(numbers(6, 1), {2, width});
  const tensor<float> scale = desk.made({1.0F}, {1});
  const tensor<float> two = desk.made({1.0F, 2.0F}, {2});
  const operand none{binding{}};
  const operand error_target{loss.targets<float>(1), x};
  const auto refused = [&](auto&&... given) {
    return message_of<usage_error>([&] { loss(s(), given...); });
  };
  using predictions = std::vector<tensor<float>>;
  using targets = std::vector<operand>;
  EXPECT_EQ(refused(predictions{x}, targets{none}, scale),
            "loss 'class, error': 1 predictions and 1 targets are given for 2 terms; give one of "
            "each for a term, empty where it is left out");
  EXPECT_EQ(refused(predictions{{}, {}}, targets{none, none}, scale),
            "loss 'class, error': no term has predictions; give those of one at least");
  EXPECT_EQ(refused(predictions{x, {}}, targets{error_target, none}, scale),
            "loss 'class, error': the targets of term 'class' are not bound to its op's targets; "
            "bind them with graphed_loss::targets");
  EXPECT_EQ(refused(predictions{{}, x}, targets{none, error_target}, two),
            "loss 'class, error': the scale has 2 elements; give one");
  EXPECT_EQ(message_of<usage_error>([&] { (void)loss.targets<float>(0); }),
            "loss 'softmax_cross_entropy': its targets 'targets' are of i32 and not of f32; bind "
            "those");
  EXPECT_EQ(message_of<usage_error>([&] { (void)loss.targets<float>(2); }),
            "graphed loss 'class, error': there is no term 2; there are 2, which count from 0");
  EXPECT_EQ(told(loss.counts()), "");
  EXPECT_EQ(message_of<usage_error>([&] {
              (void)capture(s(), [&](stream_ref) {
                loss(s(), predictions{{}, x}, targets{none, error_target}, scale);
              });
            }),
            "graphed loss 'class, error': it is called inside a capture, or a body that is being "
            "recorded; call it outside, or run its ops there (grad/inline_pass.hpp)");
  const auto made = loss(s(), predictions{{}, x}, targets{none, error_target}, scale);
  EXPECT_EQ(desk.host(made.loss), (floats{0.0F}));
}

// What a body refuses is the call's own error, and no failed replay.
TEST_P(graphed_losses, throw_what_an_op_refuses_and_record_when_it_does_not) {
  bool refuses = true;
  const choosy_error op{refuses};
  graphed_loss loss{{{"choosy", loss_op{op, op.x, op.target, op.loss}}}, desk.budget, {.on = true}};
  training_run run{{&loss}};
  run.start(s());
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(message_of<usage_error>([&] { call_of(loss, 4, i); }),
              "choosy_error: it does not like these");
  }
  EXPECT_EQ(lines_with("its first replay failed"), 0);
  refuses = false;
  for (unsigned i = 0; i < 2; ++i) call_of(loss, 4, i);
  EXPECT_EQ(told(loss.counts()), "captured 1, replayed 1");
}

}  // namespace
}  // namespace reprise::test
