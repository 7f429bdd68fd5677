// Random schedules: windows of micro-batches that are pending together, with and without targets,
// short ones, inferences, optimizers, drift and runs that start, end and fail at any time. However
// the parts run, all bits are those of a plain run in the same order.
#include <random>

#include "tests/train/support.hpp"

namespace reprise::test {
namespace {

class player {
 public:
  player(const std::string& spec, unsigned seed, const part_options& options)
      : draw_{seed}, desk_{spec}, plain_{desk_, options.in}, model_{desk_, options} {
    run_ = std::make_unique<training_run>(model_.parts());
  }

  void play(int moves) {
    run_->start(desk_.work);
    for (int i = 0; i < moves && !testing::Test::HasFailure(); ++i) move();
    while (!pending_.empty() && !testing::Test::HasFailure()) backward_of_one();
    run_->end();
    expect_same_weights(model_.own, plain_.own);
  }
  const graphed_model& model() const { return model_; }

 private:
  struct owed {
    graphed_model::under_way parts;
    plain_model::pending plain;
  };

  unsigned up_to(unsigned most) { return static_cast<unsigned>(draw_() % (most + 1)); }

  void move() {
    switch (up_to(15)) {
      case 0: return run_->batch_start();
      case 1: return infer();
      case 2: return optimize();
      case 3: return begin_again();
      case 4: return drift();
      case 5: return forget_one();
      case 6: return watch();
      case 7:
      case 8:
      case 9:
      case 10:
        if (pending_.size() < 3) return forward_of_one();
        [[fallthrough]];
      default:
        if (pending_.empty()) forward_of_one();
        backward_of_one();
    }
  }

  void forward_of_one() {
    micro_batch of{.seed = next_++};
    if (up_to(5) == 0) of.rows = 3;
    of.has_target = {up_to(4) != 0, up_to(4) != 0};
    owed one{model_.begin(of), {}};
    model_.forward(one.parts);
    one.plain = plain_.forward(of);
    if (up_to(1) == 0) model_.compute_loss(one.parts);
    pending_.push_back(std::move(one));
  }
  void backward_of_one() {
    const auto at = pending_.begin() + up_to(static_cast<unsigned>(pending_.size()) - 1);
    model_.compute_loss(at->parts);
    expect_same(model_.backward(at->parts), plain_.backward(at->plain));
    expect_same_weights(model_.own, plain_.own);
    // Some are kept over later steps, and keep their bits.
    if (up_to(2) == 0 && at->parts.dx) {
      kept_.push_back({at->parts.dx, desk_.host(at->parts.dx)});
    }
    pending_.erase(at);
    for (const auto& [gradient, bits] : kept_) EXPECT_BITS(desk_.host(gradient), bits);
    if (kept_.size() > 3) kept_.clear();
  }
  void infer() {
    const micro_batch of{.seed = next_++, .rows = 2 + up_to(4)};
    const auto seen = model_.infer(of);
    const auto expected = plain_.infer(of);
    for (const std::size_t i : {0U, 1U}) EXPECT_BITS(seen[i], expected[i]);
  }
  // A backward that is owed would be an error from then on.
  void optimize() {
    if (!pending_.empty()) return;
    model_.own.descend();
    plain_.own.descend();
    if (up_to(1) != 0) return;
    model_.own.set.drop_gradients();
    plain_.own.set.drop_gradients();
  }
  void begin_again() {
    switch (up_to(3)) {
      case 0: run_->end(); break;
      case 1: run_->failed(); break;
      case 2: run_ = std::make_unique<training_run>(model_.parts()); break;
      default: break;
    }
    if (up_to(3) != 0) run_->start(desk_.work);
  }
  // Gradients are gathered elsewhere from here on.
  void drift() {
    if (up_to(2) != 0) return;
    nn::parameter_set& set = model_.own.set;
    parameter& p = set[up_to(static_cast<unsigned>(set.size()) - 1)];
    buffer<float> other{desk_.memory, p.grad.shape.count(), desk_.work};
    copy(desk_.work, read<float>{elements_of<const float>(p.grad)}, write<float>{other.all()});
    p.grad = as_tensor(other.all(), p.grad.shape);
    moved_.push_back(std::move(other));
  }
  void forget_one() {
    if (pending_.empty()) return;
    pending_.erase(pending_.begin());
  }
  void watch() {
    if (is_watched_) {
      model_.heads.stop_observing();
    } else if (up_to(2) == 0) {
      model_.heads.observe(std::make_shared<noted_marks>());
    }
    is_watched_ = !is_watched_;
  }

  std::mt19937 draw_;
  training_desk desk_;
  std::vector<buffer<float>> moved_;
  plain_model plain_;
  graphed_model model_;
  std::unique_ptr<training_run> run_;
  std::vector<owed> pending_;
  std::vector<std::pair<tensor<float>, floats>> kept_;
  unsigned next_ = 0;
  bool is_watched_ = false;
};

class schedules_of_parts : public training_case {};

REPRISE_ON_EACH_DEVICE(schedules_of_parts);

TEST_P(schedules_of_parts, have_the_bits_of_plain_runs_whatever_comes) {
  part_counts trunk;
  part_counts loss;
  grad_counts heads;
  for (unsigned seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("schedule " + std::to_string(seed));
    const part_options options{
        .on = seed % 6 != 0,
        .in = {matrix_precision::full, seed % 4 == 0 ? cast_mode::bf16 : cast_mode::none},
        .returned = seed % 3 == 0 ? gradients::cloned : gradients::moved};
    player one{GetParam(), seed, options};
    one.play(60);
    if (HasFailure()) return;
    const part_counts of_trunk = one.model().trunk.counts();
    trunk.calls += of_trunk.calls;
    trunk.clears += of_trunk.clears;
    trunk.retirements += of_trunk.retirements;
    trunk.replays_inside_windows += of_trunk.replays_inside_windows;
    heads += one.model().heads.counts(0).calls;
    loss.replayed += one.model().loss.counts().replayed;
    loss.eager += one.model().loss.counts().eager;
  }
  // They came by all that there is.
  EXPECT_GT(trunk.calls.forward_replay, 20U);
  EXPECT_GT(trunk.calls.backward_replay, 20U);
  EXPECT_GT(trunk.calls.stale_replay, 0U);
  EXPECT_GT(trunk.calls.eager_forward[static_cast<std::size_t>(eager_cause::hold)], 0U);
  EXPECT_GT(trunk.calls.eager_forward[static_cast<std::size_t>(eager_cause::key)], 0U);
  EXPECT_GT(trunk.clears, 5U);
  EXPECT_GT(trunk.retirements, 0U);
  EXPECT_GT(trunk.replays_inside_windows, 0U);
  EXPECT_GT(heads.forward_replay, 20U);
  EXPECT_GT(loss.replayed, 20U);
  EXPECT_GT(loss.eager, 0U);
}

}  // namespace
}  // namespace reprise::test
