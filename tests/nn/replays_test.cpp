// Each layer, recorded and replayed under every policy, has the bits of the same kernels launched
// plainly: outputs, gradients of inputs, and gradients of parameters over three micro-batches, and
// state.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <utility>

#include "reprise/nn/batch_norm.hpp"
#include "reprise/nn/dropout.hpp"
#include "reprise/nn/gelu.hpp"
#include "reprise/nn/layer_norm.hpp"
#include "reprise/nn/linear.hpp"
#include "reprise/nn/sequence.hpp"
#include "reprise/nn/silu.hpp"
#include "tests/nn/plain_network.hpp"
#include "tests/nn/support.hpp"

namespace reprise::test {
namespace {

constexpr std::int64_t rows = 7;
constexpr std::int64_t width = 24;
constexpr int micro_batches = 3;

// What both sides are made of: parameters and statistics of the same values, and counters at the
// same place.
struct parts {
  nn::parameter_set set;
  std::vector<plain_parameter> plain;
  philox_counter counter{17};
  philox_counter plain_counter{17};
  nn::running_stats stats;
  std::shared_ptr<buffer<float>> plain_stats;
};

struct layer_kind {
  std::string name;
  std::int64_t out;  // the width of y
  precision in;
  nn::parameter_specs parameters;
  std::function<void(nn::network&, parts&)> graphed;
  std::function<std::vector<std::unique_ptr<plain_layer>>(parts&)> plain;
};

std::vector<std::unique_ptr<plain_layer>> alone(std::unique_ptr<plain_layer> layer) {
  std::vector<std::unique_ptr<plain_layer>> all;
  all.push_back(std::move(layer));
  return all;
}

// Draws at two places, the second behind another layer; one of its parts is a sequence too.
nn::sequence block(parts& p) {
  nn::sequence inside{"inside"};
  inside.add(nn::layer_norm{p.set[2], p.set[3]}).add(nn::gelu{}).add(nn::dropout{0.2F, p.counter});
  nn::sequence all{"block"};
  all.add(nn::dropout{0.3F, p.counter}).add(nn::linear{p.set[0], p.set[1]}).add(inside);
  return all.add(nn::linear{p.set[4], p.set[5]});
}

std::vector<std::unique_ptr<plain_layer>> plain_block(parts& p) {
  std::vector<std::unique_ptr<plain_layer>> all;
  all.push_back(plain_dropout(0.3F, p.plain_counter));
  all.push_back(plain_linear(p.plain[0], &p.plain[1]));
  all.push_back(plain_layer_norm(p.plain[2], p.plain[3], 1e-5F));
  all.push_back(plain_gelu());
  all.push_back(plain_dropout(0.2F, p.plain_counter));
  all.push_back(plain_linear(p.plain[4], &p.plain[5]));
  return all;
}

std::vector<layer_kind> kinds() {
  const precision full{};
  const precision tf32{matrix_precision::tf32, cast_mode::none};
  const precision bf16{matrix_precision::full, cast_mode::bf16};
  const nn::parameter_specs product = nn::linear_parameters("a", 10, width);
  const auto add_linear = [](nn::network& net, parts& p) {
    net.add(nn::linear{p.set[0], p.set[1]});
  };
  const auto linear = [](parts& p) { return alone(plain_linear(p.plain[0], &p.plain[1])); };
  const nn::parameter_specs of_a_block =
      nn::joined({nn::linear_parameters("a", 10, width), nn::norm_parameters("b", 10),
                  nn::linear_parameters("c", 6, 10)});
  const auto add_block = [](nn::network& net, parts& p) { net.add(block(p)); };
  return {
      {"linear", 10, full, product, add_linear, linear},
      {"linear of tf32", 10, tf32, product, add_linear, linear},
      {"linear that rounds to bf16", 10, bf16, product, add_linear, linear},
      {"linear without a bias",
       10,
       full,
       {product[0]},
       [](nn::network& net, parts& p) { net.add(nn::linear{p.set[0]}); },
       [](parts& p) { return alone(plain_linear(p.plain[0], nullptr)); }},
      {"layer_norm",
       width,
       full,
       {{"gain", {width}, nn::uniform{2}}, {"bias", {width}, nn::uniform{1}}},
       [](nn::network& net, parts& p) {
         net.add(nn::layer_norm{p.set[0], p.set[1]});
       },
       [](parts& p) { return alone(plain_layer_norm(p.plain[0], p.plain[1], 1e-5F)); }},
      {"batch_norm",
       width,
       full,
       {{"gain", {width}, nn::uniform{2}}, {"bias", {width}, nn::uniform{1}}},
       [](nn::network& net, parts& p) {
         net.add(nn::batch_norm{p.set[0], p.set[1], p.stats, {.eps = 1e-3F, .momentum = 0.2F}});
       },
       [](parts& p) {
         return alone(plain_batch_norm(p.plain[0], p.plain[1], p.plain_stats, 1e-3F, 0.2F));
       }},
      {"gelu",
       width,
       full,
       {},
       [](nn::network& net, parts&) { net.add(nn::gelu{}); },
       [](parts&) { return alone(plain_gelu()); }},
      {"silu",
       width,
       full,
       {},
       [](nn::network& net, parts&) { net.add(nn::silu{}); },
       [](parts&) { return alone(plain_silu()); }},
      {"dropout",
       width,
       full,
       {},
       [](nn::network& net, parts& p) {
         net.add(nn::dropout{0.3F, p.counter});
       },
       [](parts& p) { return alone(plain_dropout(0.3F, p.plain_counter)); }},
      {"a sequence", 6, full, of_a_block, add_block, plain_block},
      {"a sequence that rounds to bf16", 6, bf16, of_a_block, add_block, plain_block},
  };
}

class replays : public on_each_device {
 protected:
  std::vector<plain_parameter> copies_of(nn::parameter_set& set, const plain_desk& desk) {
    std::vector<plain_parameter> plain;
    for (const nn::stored_parameter& one : set.to_host(here.work)) {
      plain.push_back({desk.upload(one.values), desk.take<float>(one.values.size())});
    }
    return plain;
  }

  // Forwards of all micro-batches, then their backwards: what is owed then is what policies differ
  // in. Three rounds, gradients dropped in between; before the last the first one is kept, so that
  // the rules of one op differ.
  grad_counts train(const layer_kind& kind, const graphed_options& options) {
    SCOPED_TRACE(kind.name + ", " + text_of(options));
    const precision_scope in{kind.in};
    plain_desk desk{here.memory, here.work};
    desk.products = kind.in.products;
    desk.rounds_to_bf16 = kind.in.casts == cast_mode::bf16;
    parts p{.set = {here.memory, here.work, kind.parameters, 5},
            .plain = {},
            .stats = {here.memory, width, here.work},
            .plain_stats = {}};
    p.plain = copies_of(p.set, desk);
    std::vector<float> begins(2 * width, 0.0F);
    std::fill(begins.begin() + width, begins.end(), 1.0F);
    p.plain_stats = desk.upload(begins);
    nn::network net{budget, options};
    kind.graphed(net, p);
    plain_network plain;
    for (auto& layer : kind.plain(p)) plain.add(std::move(layer));
    for (unsigned round = 0; round < 3; ++round) {
      for (std::size_t i = round == 2 ? 1 : 0; i < p.set.size(); ++i) {
        p.set[i].has_grad = p.plain[i].has_grad = false;
      }
      run_round(round, kind, net, plain, desk);
      for (std::size_t i = 0; i < p.set.size(); ++i) {
        EXPECT_TRUE(same_bits(gradient_of_parameter(here, p.set[i]),
                              read_back<float>(here.work, p.plain[i].grad->all())))
            << "parameter " << p.set.name(i) << ", round " << round;
      }
      EXPECT_EQ(p.counter.next(), p.plain_counter.next());
      EXPECT_TRUE(same_bits(read_back<float>(here.work, p.stats.all()),
                            read_back<float>(here.work, p.plain_stats->all())))
          << "running statistics, round " << round;
    }
    return net.counts();
  }

  void run_round(unsigned round, const layer_kind& kind, nn::network& net, plain_network& plain,
                 plain_desk& desk) {
    std::array<nn::network_call, micro_batches> calls;
    std::array<plain_call, micro_batches> plain_calls;
    for (unsigned i = 0; i < micro_batches; ++i) {
      const std::vector<float> x = numbers(rows * width, 10 * round + i);
      calls[i] = net.forward(here.work, operand{net.x(), tensor_of(here, x, {rows, width})});
      plain_calls[i] = plain.forward(desk, {desk.upload(x), rows, width});
      EXPECT_TRUE(
          same_bits(host_of(here, calls[i].y), read_back<float>(here.work, plain_calls[i].y.all())))
          << "y " << i << ", round " << round;
    }
    for (unsigned i = 0; i < micro_batches; ++i) {
      const std::vector<float> dy =
          numbers(static_cast<std::size_t>(rows * kind.out), 100 + 10 * round + i);
      const tensor<float> dx =
          net.backward(here.work, calls[i], tensor_of(here, dy, {rows, kind.out}), true);
      const plain_rows expected =
          plain.backward(desk, plain_calls[i], {desk.upload(dy), rows, kind.out});
      EXPECT_TRUE(same_bits(host_of(here, dx), read_back<float>(here.work, expected.all())))
          << "dx " << i << ", round " << round;
    }
  }
};

TEST_P(replays, under_hold_have_the_bits_of_a_plain_run) {
  for (const layer_kind& kind : kinds()) {
    const grad_counts counts = train(kind, {.conflict = hold{}});
    EXPECT_EQ(counts.forward_capture, 1U);
    EXPECT_EQ(counts.forward_replay, 2U);
    EXPECT_EQ(counts.eager_forward[static_cast<std::size_t>(eager_cause::hold)], 6U);
    EXPECT_EQ(counts.eager_backward[static_cast<std::size_t>(eager_cause::hold)], 6U);
    EXPECT_EQ(counts.backward_capture, 1U);
    EXPECT_EQ(counts.backward_replay, 2U);
    EXPECT_EQ(counts.stale_replay, 0U);
  }
}

// A frame's last forward owns it when its first backward comes: each of a round's three is stale.
TEST_P(replays, under_recompute_have_the_bits_of_a_plain_run) {
  for (const layer_kind& kind : kinds()) {
    const grad_counts counts = train(kind, {.conflict = recompute{}});
    EXPECT_EQ(counts.forward_capture, 1U);
    EXPECT_EQ(counts.forward_replay, 8U);
    EXPECT_EQ(counts.backward_capture, 1U);
    EXPECT_EQ(counts.backward_replay, 8U);
    EXPECT_EQ(counts.stale_replay, 9U);
    EXPECT_EQ(counts.eager_forwards() + counts.eager_backwards(), 0U);
  }
}

TEST_P(replays, in_slots_have_the_bits_of_a_plain_run) {
  for (const layer_kind& kind : kinds()) {
    const grad_counts counts = train(kind, {.conflict = slots_for_accumulation(micro_batches)});
    EXPECT_EQ(counts.forward_capture, 3U);
    EXPECT_EQ(counts.forward_replay, 6U);
    EXPECT_EQ(counts.backward_capture, 3U);
    EXPECT_EQ(counts.backward_replay, 6U);
    EXPECT_EQ(counts.stale_replay, 0U);
    EXPECT_EQ(counts.eager_forwards() + counts.eager_backwards(), 0U);
  }
}

TEST_P(replays, that_are_off_have_the_bits_of_a_plain_run) {
  for (const layer_kind& kind : kinds()) {
    const grad_counts counts = train(kind, {.record = false});
    EXPECT_EQ(counts.eager_forwards(), 9U);
    EXPECT_EQ(counts.eager_backwards(), 9U);
  }
}

INSTANTIATE_TEST_SUITE_P(devices, replays, testing::ValuesIn(devices_under_test()), name_of_device);

}  // namespace
}  // namespace reprise::test
