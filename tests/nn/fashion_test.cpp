// The real thing: a small classifier of clothes, trained on real images in windows of three
// micro-batches, with a short last window and a short last micro-batch. After every update its
// losses, weights and optimizer state have the bits of a plain run of the same kernels.
#include <algorithm>
#include <memory>
#include <utility>

#include "reprise/nn/dropout.hpp"
#include "reprise/nn/gelu.hpp"
#include "reprise/nn/layer_norm.hpp"
#include "reprise/nn/linear.hpp"
#include "reprise/nn/optimizers.hpp"
#include "reprise/nn/softmax_cross_entropy.hpp"
#include "tests/nn/fashion.hpp"
#include "tests/nn/plain_network.hpp"
#include "tests/nn/support.hpp"

namespace reprise::test {
namespace {

constexpr std::int64_t hidden = 64;
constexpr std::int64_t classes = 10;
constexpr std::int64_t images_used = 504;  // 31 micro-batches of 16 and one of 8
constexpr std::int64_t micro_batch = 16;
constexpr std::int64_t window = 3;  // so the last of an epoch has two
constexpr float rate = 4e-3F;
constexpr float decay = 0.01F;
constexpr float drop_rate = 0.1F;

struct images_of {
  std::vector<float> pixels;
  std::vector<std::int32_t> targets;

  std::int64_t count() const { return static_cast<std::int64_t>(targets.size()); }
};

images_of part_of(const fashion_images& all, std::int64_t first, std::int64_t count) {
  const auto at = [](const auto& from, std::int64_t i) { return from.begin() + i; };
  return {{at(all.pixels, first * small_pixels), at(all.pixels, (first + count) * small_pixels)},
          {at(all.classes, first), at(all.classes, first + count)}};
}

// One epoch: windows of micro-batches.
std::vector<std::vector<images_of>> windows_of(const fashion_images& all) {
  std::vector<std::vector<images_of>> windows;
  std::int64_t batches = 0;
  for (std::int64_t first = 0; first < images_used; first += micro_batch, ++batches) {
    if (batches % window == 0) windows.emplace_back();
    windows.back().push_back(part_of(all, first, std::min(micro_batch, images_used - first)));
  }
  return windows;
}

nn::parameter_specs weights_of_it() {
  return nn::joined({nn::linear_parameters("in", hidden, small_pixels),
                     nn::norm_parameters("norm", hidden),
                     nn::linear_parameters("out", classes, hidden)});
}

struct training_way {
  std::string name;
  graphed_options options;
  bool forwards_first = false;  // of a window, before its backwards
  bool checkpointed = false;    // all but the last layer
  cast_mode casts = cast_mode::none;
};

// Recorded, replayed, and updated by recorded steps.
class graphed_trainer {
 public:
  graphed_trainer(bench& on, byte_budget& budget, const training_way& way)
      : on_{on},
        way_{way},
        set{on.memory, on.work, weights_of_it(), 7},
        net{budget, way.options},
        loss{nn::softmax_cross_entropy{}, budget, way.options},
        optimizer{set, on.memory, on.work, {.rate = rate, .weight_decay = decay}},
        updates{on.opened} {
    if (way.checkpointed) net.begin_checkpoint("trunk");
    net.add(nn::linear{set.at("in.weight"), set.at("in.bias")});
    net.add(nn::layer_norm{set.at("norm.gain"), set.at("norm.bias")});
    net.add(nn::gelu{});
    net.add(nn::dropout{drop_rate, counter});
    if (way.checkpointed) net.end_checkpoint();
    net.add(nn::linear{set.at("out.weight"), set.at("out.bias")});
  }

  // The losses of the window's micro-batches; the loss of a window is their mean.
  std::vector<float> train(const std::vector<images_of>& batches) {
    set.drop_gradients();
    const tensor<float> share =
        tensor_of(on_, {1.0F / static_cast<float>(batches.size())}, dims{1});
    std::vector<float> losses;
    std::vector<owed> owing;
    for (const images_of& one : batches) {
      owing.push_back(forward(one));
      losses.push_back(host_of(on_, owing.back().loss[loss.op().loss])[0]);
      if (way_.forwards_first) continue;
      backward(owing.back(), share);
      owing.clear();
    }
    for (const owed& one : owing) backward(one, share);
    owing.clear();
    optimizer.update(on_.work, updates);
    return losses;
  }

  double accuracy(const fashion_images& of) {
    const images_of all = part_of(of, 0, of.count());
    const std::vector<float> logits =
        host_of(on_, net.infer(on_.work, net.x().from_host(all.pixels)));
    std::int64_t right = 0;
    for (std::int64_t i = 0; i < all.count(); ++i) {
      const auto row = logits.begin() + i * classes;
      const auto best = std::max_element(row, row + classes) - row;
      if (best == all.targets[static_cast<std::size_t>(i)]) ++right;
    }
    return static_cast<double>(right) / static_cast<double>(all.count());
  }

 private:
  struct owed {
    nn::network_call call;
    forward_result loss;
  };

  owed forward(const images_of& batch) {
    owed made;
    made.call = net.forward(on_.work, net.x().from_host(batch.pixels));
    made.loss = loss.forward(on_.work, {operand{loss.op().logits, made.call.y},
                                        operand{loss.op().targets.from_host(batch.targets)}});
    return made;
  }
  void backward(const owed& of, const tensor<float>& share) {
    const grad_result formed =
        loss.backward(on_.work, of.loss.ticket, {gradient_of(loss.op().loss, share)});
    net.backward(on_.work, of.call, formed[loss.op().logits]);
  }

  bench& on_;
  training_way way_;

 public:
  philox_counter counter{23};
  nn::parameter_set set;
  nn::network net;
  graphed_op<nn::softmax_cross_entropy> loss;
  nn::adamw optimizer;
  replay_cache updates;
};

class plain_trainer {
 public:
  plain_trainer(bench& on, const training_way& way, nn::parameter_set& begins)
      : on_{on}, forwards_first_{way.forwards_first}, desk_{on.memory, on.work} {
    desk_.rounds_to_bf16 = way.casts == cast_mode::bf16;
    for (const nn::stored_parameter& one : begins.to_host(on.work)) {
      parameters.push_back(std::make_unique<plain_parameter>(
          plain_parameter{desk_.upload(one.values), desk_.take<float>(one.values.size())}));
    }
    const auto at = [&](std::size_t i) -> plain_parameter& { return *parameters[i]; };
    net_.add(plain_linear(at(0), &at(1)));
    net_.add(plain_layer_norm(at(2), at(3), 1e-5F));
    net_.add(plain_gelu());
    net_.add(plain_dropout(drop_rate, counter));
    net_.add(plain_linear(at(4), &at(5)));
    std::vector<plain_parameter*> all;
    for (const auto& one : parameters) all.push_back(one.get());
    optimizer = std::make_unique<plain_adamw>(desk_, all, rate, decay);
  }

  std::vector<float> train(const std::vector<images_of>& batches) {
    for (const auto& one : parameters) one->has_grad = false;
    const float share = 1.0F / static_cast<float>(batches.size());
    std::vector<float> losses;
    std::vector<std::pair<plain_call, plain_rows>> owing;
    for (const images_of& one : batches) {
      const plain_call call =
          net_.forward(desk_, {desk_.upload(one.pixels), one.count(), small_pixels});
      const plain_loss made = plain_cross_entropy(desk_, call.y, one.targets, share);
      losses.push_back(read_back<float>(on_.work, made.loss->all())[0]);
      owing.emplace_back(call, made.dx);
      if (forwards_first_) continue;
      net_.backward(desk_, call, made.dx);
      owing.clear();
    }
    for (const auto& [call, dx] : owing) net_.backward(desk_, call, dx);
    optimizer->update(desk_);
    return losses;
  }

 private:
  bench& on_;
  bool forwards_first_;
  plain_desk desk_;
  plain_network net_;

 public:
  philox_counter counter{23};
  std::vector<std::unique_ptr<plain_parameter>> parameters;
  std::unique_ptr<plain_adamw> optimizer;
};

class training : public on_each_device {
 protected:
  const fashion_images images = read_fashion("train");

  void expect_same_state(graphed_trainer& graphed, plain_trainer& plain) {
    const auto all = [&](view<float> from) { return read_back<float>(here.work, from); };
    const std::vector<float> values = all(graphed.set.values());
    const std::vector<float> first = all(graphed.optimizer.first_moments());
    const std::vector<float> second = all(graphed.optimizer.second_moments());
    for (std::size_t i = 0; i < graphed.set.size(); ++i) {
      SCOPED_TRACE(graphed.set.name(i));
      const auto part = [&](const std::vector<float>& from) {
        return std::vector<float>{from.begin() + static_cast<std::ptrdiff_t>(graphed.set.begin(i)),
                                  from.begin() + static_cast<std::ptrdiff_t>(graphed.set.end(i))};
      };
      const plain_adamw::moments& moments = plain.optimizer->all()[i];
      ASSERT_TRUE(same_bits(part(values), all(plain.parameters[i]->value->all())));
      ASSERT_TRUE(same_bits(part(first), all(moments.first->all())));
      ASSERT_TRUE(same_bits(part(second), all(moments.second->all())));
    }
    ASSERT_EQ(graphed.counter.next(), plain.counter.next());
  }

  // Trains both side by side; the mean loss of each epoch.
  std::vector<float> train(graphed_trainer& graphed, const training_way& way, int epochs) {
    const precision_scope in{{matrix_precision::full, way.casts}};
    plain_trainer plain{here, way, graphed.set};
    const auto windows = windows_of(images);
    std::vector<float> of_epochs;
    for (int epoch = 0; epoch < epochs; ++epoch) {
      std::vector<float> losses;
      for (std::size_t w = 0; w < windows.size(); ++w) {
        SCOPED_TRACE("epoch " + std::to_string(epoch) + ", window " + std::to_string(w));
        const std::vector<float> made = graphed.train(windows[w]);
        EXPECT_TRUE(same_bits(made, plain.train(windows[w])));
        expect_same_state(graphed, plain);
        if (HasFailure()) return of_epochs;
        losses.insert(losses.end(), made.begin(), made.end());
      }
      float sum = 0;
      for (const float loss : losses) sum += loss;
      of_epochs.push_back(sum / static_cast<float>(losses.size()));
    }
    return of_epochs;
  }
};

constexpr std::size_t by_key = static_cast<std::size_t>(eager_cause::key);

// 32 micro-batches an epoch, one of which is short and so of another key.
TEST_P(training, on_clothes_learns_them_and_has_the_bits_of_a_plain_run) {
  const training_way way{"a backward behind each forward", {}};
  graphed_trainer graphed{here, budget, way};
  const double before = graphed.accuracy(read_fashion("t10k"));
  const std::vector<float> losses = train(graphed, way, 3);
  ASSERT_EQ(losses.size(), 3U);
  EXPECT_LT(losses[1], losses[0]);
  EXPECT_LT(losses[2], losses[1]);
  EXPECT_LT(losses[2], 1.1F) << "from 2.3, where all classes are as likely";
  EXPECT_LT(before, 0.3) << "ten classes";
  EXPECT_GT(graphed.accuracy(read_fashion("t10k")), 0.65);

  for (const grad_counts& counts : {graphed.net.at(0).counts(), graphed.loss.counts()}) {
    EXPECT_EQ(counts.forward_capture, 1U);
    EXPECT_EQ(counts.forward_replay, 92U);
    EXPECT_EQ(counts.backward_capture, 1U);
    EXPECT_EQ(counts.backward_replay, 92U);
  }
  const grad_counts counts = graphed.net.counts();
  EXPECT_EQ(counts.forward_capture, 5U);
  EXPECT_EQ(counts.forward_replay, 5U * 92);
  EXPECT_EQ(counts.backward_capture, 5U);
  EXPECT_EQ(counts.backward_replay, 5U * 92);
  EXPECT_EQ(counts.eager_forward[by_key], 5U * 3);
  EXPECT_EQ(counts.eager_backward[by_key], 5U * 3);
  EXPECT_EQ(counts.eager_forwards(), 5U * 3);
  EXPECT_EQ(counts.eager_backwards(), 5U * 3);
  EXPECT_EQ(counts.stale_replay, 0U);
  EXPECT_EQ(counts.inference, 2U * 4) << "dropout is left out";
  EXPECT_EQ(graphed.updates.counts().captured, 1U);
  EXPECT_EQ(graphed.updates.counts().replayed, 32U);
  EXPECT_EQ(graphed.updates.counts().eager, 0U);
}

TEST_P(training, with_a_slot_for_each_micro_batch_of_a_window_is_never_stale) {
  const training_way way{"forwards first", {.conflict = slots_for_accumulation(window)}, true};
  graphed_trainer graphed{here, budget, way};
  train(graphed, way, 1);
  const grad_counts counts = graphed.net.counts();
  EXPECT_EQ(counts.forward_capture, 5U * 3);
  EXPECT_EQ(counts.forward_replay, 5U * 28);
  EXPECT_EQ(counts.backward_capture, 5U * 3);
  EXPECT_EQ(counts.backward_replay, 5U * 28);
  EXPECT_EQ(counts.eager_forwards(), 5U);
  EXPECT_EQ(counts.eager_backwards(), 5U);
  EXPECT_EQ(counts.stale_replay, 0U);
}

// In each of ten whole windows every backward is stale; in the last, of one recorded micro-batch
// and a short one, none is.
TEST_P(training, by_recomputation_has_the_bits_of_a_plain_run) {
  const training_way way{"recompute", {.conflict = recompute{}}, true};
  graphed_trainer graphed{here, budget, way};
  train(graphed, way, 1);
  const grad_counts counts = graphed.net.counts();
  EXPECT_EQ(counts.forward_capture, 5U);
  EXPECT_EQ(counts.forward_replay, 5U * 30);
  EXPECT_EQ(counts.backward_capture, 5U);
  EXPECT_EQ(counts.backward_replay, 5U * 30);
  EXPECT_EQ(counts.stale_replay, 5U * 30);
}

// The trunk drops what it keeps, and each of its layers runs once more before its backward.
TEST_P(training, with_a_checkpointed_trunk_has_the_bits_of_a_plain_run) {
  const training_way way{"checkpointed", {}, true, true};
  graphed_trainer graphed{here, budget, way};
  train(graphed, way, 1);
  EXPECT_EQ(graphed.net.at(0).counts().forward_capture, 1U);
  EXPECT_EQ(graphed.net.at(0).counts().forward_replay, 2U * 31 - 1);
  EXPECT_EQ(graphed.net.at(0).counts().backward_replay, 30U);
  EXPECT_EQ(graphed.net.at(0).counts().eager_forward[by_key], 2U);
  EXPECT_EQ(graphed.net.at(0).counts().stale_replay, 0U);
}

TEST_P(training, in_bf16_has_the_bits_of_a_plain_run) {
  const training_way way{"bf16", {}, false, false, cast_mode::bf16};
  graphed_trainer graphed{here, budget, way};
  train(graphed, way, 1);
  EXPECT_EQ(graphed.net.counts().forward_replay, 5U * 30);
  EXPECT_EQ(graphed.net.counts().backward_replay, 5U * 30);
}

INSTANTIATE_TEST_SUITE_P(devices, training, testing::ValuesIn(devices_under_test()),
                         name_of_device);

}  // namespace
}  // namespace reprise::test
