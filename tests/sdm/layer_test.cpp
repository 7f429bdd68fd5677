// The memory layer: its numbers are those of the equations around the op, its replays have the bits
// of eager runs, and decoding says what the forward over all tokens says.
#include "reprise/sdm/layer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "reprise/replay/recorder.hpp"
#include "tests/nn/host_ops.hpp"
#include "tests/nn/support.hpp"
#include "tests/sdm/plain_memory.hpp"

namespace reprise::test {
namespace {

constexpr sdm_layer_options small{
    .streams = 2, .side = 5, .width = 12, .key_width = 6, .writes = 3, .reads = 4, .chunk = 4};
constexpr std::int64_t tokens = 11;

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

// The layer in double, from values by name. Slots are chosen in its first run and then kept: near a
// tie they could jump, and a gradient is of the weights alone.
class plain_layer_of {
 public:
  plain_layer_of(const sdm_layer_options& o, std::vector<nn::stored_parameter> values) : o_{o} {
    for (nn::stored_parameter& one : values) values_[one.name] = widened(one.values);
  }

  host_values& operator[](const std::string& name) { return values_.at("m." + name); }

  host_values y(const host_values& x) {
    const std::int64_t m = static_cast<std::int64_t>(x.size()) / o_.width;
    const std::int64_t columns = o_.width + 4 * o_.key_width + 2;
    const host_values z = host_linear(x, (*this)["in.weight"], {}, at(o_.width));
    memory_call c;
    c.sizes = {.streams = o_.streams,
               .slots = o_.slots(),
               .width = o_.width,
               .tokens = m / o_.streams,
               .writes = o_.writes,
               .reads = o_.reads,
               .chunk = 1};
    for (std::int64_t p = 0; p < o_.streams; ++p) {
      const host_values& bank = (*this)["bank"];
      c.bank.insert(c.bank.end(), bank.begin(), bank.end());
    }
    for (std::int64_t row = 0; row < m; ++row) {
      const auto column = [&](std::int64_t j) { return z[at(row * columns + j)]; };
      for (std::int64_t j = 0; j < o_.width; ++j) c.v.push_back(column(j));
      c.beta.push_back(1 / (1 + std::exp(-column(columns - 2))));
      c.g.push_back(-std::log1p(std::exp(-(column(columns - 1) + o_.retention))));
      address(row, m, z, o_.width, o_.writes, c.k_idx, c.k_val);
      address(row, m, z, o_.width + 2 * o_.key_width, o_.reads, c.q_idx, c.q_val);
    }
    c.dy.resize(c.v.size());
    c.d_final.resize(c.bank.size());
    const host_values normed =
        host_layer_norm(in_doubles(c).readings, (*this)["norm.gain"], (*this)["norm.bias"], 1e-5);
    host_values y = host_linear(normed, (*this)["out.weight"], {}, at(o_.width));
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += x[i];
    return y;
  }

 private:
  // The best slots by brute force, ascending, and the softmax of their scores.
  void address(std::int64_t row, std::int64_t m, const host_values& z, std::int64_t begin,
               std::int64_t count, std::vector<std::int32_t>& idx, host_values& val) {
    const std::int64_t columns = o_.width + 4 * o_.key_width + 2;
    const auto scores = [&](const std::string& keys, std::int64_t from) {
      host_values query;
      for (std::int64_t j = 0; j < o_.key_width; ++j) {
        query.push_back(z[at(row * columns + from + j)]);
      }
      return host_linear(query, (*this)[keys], {}, at(o_.key_width));
    };
    const host_values first = scores("first_keys.weight", begin);
    const host_values second = scores("second_keys.weight", begin + o_.key_width);
    const auto score = [&](std::int32_t slot) {
      return first[at(slot / o_.side)] + second[at(slot % o_.side)];
    };
    std::vector<std::int32_t>& chosen = chosen_[{row, begin}];
    if (chosen.empty()) {
      std::vector<std::int32_t> slots(at(o_.slots()));
      std::iota(slots.begin(), slots.end(), 0);
      std::stable_sort(slots.begin(), slots.end(),
                       [&](std::int32_t a, std::int32_t b) { return score(a) > score(b); });
      chosen.assign(slots.begin(), slots.begin() + count);
      std::sort(chosen.begin(), chosen.end());
    }
    double greatest = -1e300;
    for (const std::int32_t slot : chosen) greatest = std::max(greatest, score(slot));
    double sum = 0;
    for (const std::int32_t slot : chosen) sum += std::exp(score(slot) - greatest);
    for (const std::int32_t slot : chosen) {
      idx.push_back(slot + static_cast<std::int32_t>(row / (m / o_.streams) * o_.slots()));
      val.push_back(std::exp(score(slot) - greatest) / sum);
    }
  }

  sdm_layer_options o_;
  std::map<std::string, host_values> values_;
  // By row, and where its query begins: of writes, or of reads.
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int32_t>> chosen_;
};

class memory_layer : public on_each_device {
 protected:
  std::vector<float> rows(unsigned seed) {
    return numbers(at(small.streams * tokens * small.width), seed);
  }
  dims shape() const { return {small.streams * tokens, small.width}; }
};

// The direction is random, and so every element of every gradient counts.
TEST_P(memory_layer, has_the_numbers_and_the_gradients_of_its_equations) {
  nn::parameter_set set{here.memory, here.work, sdm_layer_parameters("m", small), 3};
  graphed_op layer{sdm_layer<float>{set, "m", small}, budget};
  const std::vector<float> x = rows(1);
  const std::vector<float> dy = rows(2);
  plain_layer_of plain{small, set.to_host(here.work)};
  const host_values expected = plain.y(widened(x));
  const tensor<float> from = tensor_of(here, x, shape());
  const tensor<float> above = tensor_of(here, dy, shape());
  for (int again = 0; again < 2; ++again) {  // captured, then replayed
    set.drop_gradients();
    const forward_result made = layer.forward(here.work, {operand{layer.op().x, from}});
    const grad_result formed =
        layer.backward(here.work, made.ticket, {gradient_of(layer.op().y, above)});
    const std::vector<float> y = host_of(here, made[layer.op().y]);
    for (std::size_t i = 0; i < y.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(y[i]), expected[i], 2e-5) << "y " << i;
    }

    const auto expect_slope = [&](const std::string& what, const std::vector<float>& gradient,
                                  const std::function<double(double)>& loss_at,
                                  const host_values& along) {
      constexpr double h = 1e-5;
      const double slope = (loss_at(h) - loss_at(-h)) / (2 * h);
      EXPECT_NEAR(dot(widened(gradient), along), slope, 1e-3 * std::max(1.0, std::abs(slope)))
          << what;
    };
    const host_values of_x = widened(numbers(x.size(), 7));
    expect_slope(
        "x", host_of(here, formed[layer.op().x]),
        [&](double h) {
          host_values moved = widened(x);
          for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += h * of_x[i];
          return dot(plain.y(moved), widened(dy));
        },
        of_x);
    for (std::size_t i = 0; i < set.size(); ++i) {
      const std::string name = set.name(i).substr(2);
      host_values& values = plain[name];
      const host_values before = values;
      const host_values along = widened(numbers(values.size(), 8));
      expect_slope(
          name, gradient_of_parameter(here, set[i]),
          [&](double h) {
            for (std::size_t j = 0; j < values.size(); ++j) values[j] = before[j] + h * along[j];
            const double loss = dot(plain.y(widened(x)), widened(dy));
            values = before;
            return loss;
          },
          along);
    }
  }
  EXPECT_EQ(layer.counts().forward_replay, 1U);
  EXPECT_EQ(layer.counts().backward_replay, 1U);
}

TEST_P(memory_layer, replayed_has_the_bits_of_eager_runs) {
  const auto train = [&]<class B>(B, const sdm_layer_options& o, const precision& in,
                                  const graphed_options& options) {
    const precision_scope in_force{in};
    nn::parameter_set set{here.memory, here.work, sdm_layer_parameters("m", o), 3};
    graphed_op layer{sdm_layer<B>{set, "m", o}, budget, options};
    std::vector<std::vector<float>> found;
    for (unsigned round = 0; round < 2; ++round) {
      std::array<forward_result, 3> made;
      for (unsigned i = 0; i < 3; ++i) {
        made[i] = layer.forward(
            here.work, {operand{layer.op().x, tensor_of(here, rows(10 * round + i), shape())}});
        found.push_back(host_of(here, made[i][layer.op().y]));
      }
      for (unsigned i = 0; i < 3; ++i) {
        const grad_result formed =
            layer.backward(here.work, made[i].ticket,
                           {gradient_of(layer.op().y, tensor_of(here, rows(40 + i), shape()))});
        found.push_back(host_of(here, formed[layer.op().x]));
      }
    }
    for (std::size_t i = 0; i < set.size(); ++i) {
      found.push_back(gradient_of_parameter(here, set[i]));
    }
    const bool eager = !options.record;
    EXPECT_EQ(layer.counts().eager_forwards() + layer.counts().eager_backwards(), eager ? 12U : 0U);
    return found;
  };
  const auto same = [&]<class B>(B type, const sdm_layer_options& o, const precision& in) {
    const auto expected = train(type, o, in, {.record = false});
    for (const on_conflict& policy : {on_conflict{recompute{}}, on_conflict{slots{3}}}) {
      const auto found = train(type, o, in, {.conflict = policy});
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_TRUE(same_bits(found[i], expected[i])) << text_of(policy) << ", " << i;
      }
    }
  };
  same(float{}, small, {});
  same(bf16{}, small, {matrix_precision::tf32, cast_mode::none});
  sdm_layer_options wide = small;
  wide.wide_bank_grad = true;
  wide.rows = saved_rows::fp8;
  same(bf16{}, wide, {matrix_precision::full, cast_mode::bf16});
}

TEST_P(memory_layer, decodes_what_its_forward_over_all_tokens_says) {
  nn::parameter_set set{here.memory, here.work, sdm_layer_parameters("m", small), 3};
  const sdm_layer<float> layer{set, "m", small};
  graphed_op whole{layer, budget};
  const std::vector<float> x = rows(1);
  const std::vector<float> y = host_of(
      here,
      whole.infer(here.work, {operand{whole.op().x, tensor_of(here, x, shape())}})[whole.op().y]);

  const buffer<float> bank{here.memory, at(small.streams * small.slots() * small.width), here.work};
  signature declared{"one token"};
  const input<float> one = declared.in<float>("x", {small.streams, small.width});
  const output<float> out = declared.out<float>("y");
  declared.state("banks", as_tensor(bank.all()));
  for (const auto& use : layer.describe().uses()) declared.uses(use.name, *use.weight);
  const step what{
      declared, [&](step_scope& run) {
        layer.step(run, run[one], bank.all(), run.make(out, {small.streams, small.width}));
      }};
  layer.begin(here.work, bank.all());
  eager_runner eager{here.opened};
  recorder maker{here.opened, eager};
  std::optional<recording> recorded;
  for (std::int64_t t = 0; t < tokens; ++t) {
    std::vector<float> now;
    for (std::int64_t p = 0; p < small.streams; ++p) {
      const auto begin = x.begin() + (p * tokens + t) * small.width;
      now.insert(now.end(), begin, begin + small.width);
    }
    std::vector<float> said;
    if (t == 0) {
      reprise::recorded first = maker.record(here.work, what, {one.from_host(now)});
      said = read_back(here.work, first.first[out].get());
      ASSERT_TRUE(first.made.has_value());
      recorded = *std::move(first.made);
    } else {
      const auto ran = recorded->replay(here.work, what, {one.from_host(now)});
      ASSERT_TRUE(ran.has_value());
      said = read_back(here.work, (*ran)[out].get());
    }
    for (std::int64_t p = 0; p < small.streams; ++p) {
      for (std::int64_t d = 0; d < small.width; ++d) {
        ASSERT_NEAR(said[at(p * small.width + d)], y[at((p * tokens + t) * small.width + d)], 2e-5F)
            << "token " << t << " of stream " << p;
      }
    }
  }
}

TEST_P(memory_layer, refuses_what_does_not_fit) {
  nn::parameter_set set{here.memory, here.work, sdm_layer_parameters("m", small), 3};
  sdm_layer_options other = small;
  other.width = 13;
  EXPECT_THROW((sdm_layer<float>{set, "m", other}), usage_error);
  EXPECT_THROW((sdm_layer<float>{set, "n", small}), usage_error);
  graphed_op layer{sdm_layer<float>{set, "m", small}, budget};
  EXPECT_THROW(
      layer.forward(here.work, {operand{layer.op().x, tensor_of(here, numbers(36, 1), {3, 12})}}),
      usage_error);
}

INSTANTIATE_TEST_SUITE_P(devices, memory_layer, testing::ValuesIn(devices_under_test()),
                         name_of_device);

}  // namespace
}  // namespace reprise::test
