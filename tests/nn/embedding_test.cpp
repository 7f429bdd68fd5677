// The embedding of tokens as a differentiable op: rows of its table, the table's gradient against
// central differences, and every policy with the bits of a plain sum.
#include "reprise/nn/embedding.hpp"

#include <array>

#include "tests/nn/host_ops.hpp"
#include "tests/nn/support.hpp"

namespace reprise::test {
namespace {

using tokens = std::vector<std::int32_t>;
using table_op = graphed_op<nn::embedding>;

constexpr std::int64_t vocabulary = 6;
constexpr std::int64_t width = 5;
constexpr std::int64_t rows = 9;

const tokens text{3, 0, 3, 5, -1, 3, 0, 6, 2};  // two are no tokens

class embeddings : public on_each_device {
 protected:
  nn::parameter_set set{
      here.memory, here.work, {{"table", {vocabulary, width}, nn::uniform{1}}}, 3};

  forward_result forward(table_op& of, const tokens& given) {
    return of.forward(here.work, {operand{of.op().tokens.from_host(given)}});
  }
  void backward(table_op& of, const forward_result& made, const std::vector<float>& dy) {
    (void)of.backward(here.work, made.ticket,
                      {gradient_of(of.op().y, tensor_of(here, dy, {rows, width}))});
  }
};

host_values host_embedding(const host_values& table, const tokens& given) {
  host_values y;
  for (const std::int32_t token : given) {
    for (std::int64_t j = 0; j < width; ++j) {
      const bool there = token >= 0 && token < vocabulary;
      y.push_back(there ? table[static_cast<std::size_t>(token * width + j)] : 0);
    }
  }
  return y;
}

// Some tokens of each micro-batch are others'.
tokens shifted(const tokens& given, std::int32_t by) {
  tokens moved = given;
  for (std::size_t i = 0; i < moved.size(); i += 2) {
    moved[i] = static_cast<std::int32_t>((moved[i] + by) % vocabulary);
  }
  return moved;
}

TEST_P(embeddings, give_the_rows_of_their_table_and_its_gradient) {
  const std::vector<float> table = set.to_host(here.work)[0].values;
  const std::vector<float> dy = numbers(rows * width, 1);
  table_op layer{nn::embedding{set[0]}, budget};
  for (int again = 0; again < 2; ++again) {  // captured, then replayed
    set.drop_gradients();
    const forward_result made = forward(layer, text);
    const std::vector<float> y = host_of(here, made[layer.op().y]);
    EXPECT_EQ(widened(y), host_embedding(widened(table), text));
    backward(layer, made, dy);
    const host_values want = central_differences(
        [&](const host_values& at) { return dot(host_embedding(at, text), widened(dy)); },
        widened(table));
    const std::vector<float> got = gradient_of_parameter(here, set[0]);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(got[i]), want[i], 1e-6) << i;
    }
  }
  EXPECT_EQ(layer.counts().forward_replay, 1U);
  EXPECT_EQ(layer.counts().backward_replay, 1U);
}

TEST_P(embeddings, add_up_micro_batches_exactly_under_every_policy) {
  constexpr std::size_t batches = 3;
  std::vector<float> want(vocabulary * width, 0.0F);
  std::array<tokens, batches> given;
  std::array<std::vector<float>, batches> dys;
  for (std::size_t b = 0; b < batches; ++b) {
    given[b] = shifted(text, static_cast<std::int32_t>(b));
    dys[b] = numbers(rows * width, static_cast<unsigned>(10 + b));
    std::vector<float> sums(want.size(), 0.0F);
    for (std::size_t i = 0; i < given[b].size(); ++i) {
      const std::int32_t token = given[b][i];
      if (token < 0 || token >= vocabulary) continue;
      for (std::int64_t j = 0; j < width; ++j) {
        sums[static_cast<std::size_t>(token * width + j)] +=
            dys[b][i * static_cast<std::size_t>(width) + static_cast<std::size_t>(j)];
      }
    }
    for (std::size_t i = 0; i < want.size(); ++i) want[i] = b == 0 ? sums[i] : want[i] + sums[i];
  }
  for (const graphed_options& options :
       {graphed_options{.conflict = hold{}}, graphed_options{.conflict = recompute{}},
        graphed_options{.conflict = slots{batches}}, graphed_options{.record = false}}) {
    SCOPED_TRACE(text_of(options));
    table_op layer{nn::embedding{set[0]}, budget, options};
    for (int round = 0; round < 2; ++round) {
      set.drop_gradients();
      std::array<forward_result, batches> made;
      for (std::size_t b = 0; b < batches; ++b) made[b] = forward(layer, given[b]);
      for (std::size_t b = 0; b < batches; ++b) backward(layer, made[b], dys[b]);
      EXPECT_TRUE(same_bits(gradient_of_parameter(here, set[0]), want)) << "round " << round;
    }
  }
}

TEST_P(embeddings, read_the_table_as_it_is_now) {
  table_op layer{nn::embedding{set[0]}, budget};
  (void)host_of(here, forward(layer, text)[layer.op().y]);
  std::vector<nn::stored_parameter> stored = set.to_host(here.work);
  for (float& one : stored[0].values) one += 1;
  set.from_host(here.work, stored);
  const std::vector<float> y = host_of(here, forward(layer, text)[layer.op().y]);
  EXPECT_EQ(widened(y), host_embedding(widened(stored[0].values), text));
}

TEST_P(embeddings, of_a_table_without_a_gradient_buffer_train_nothing) {
  set[0].grad = {};
  table_op layer{nn::embedding{set[0]}, budget};
  const forward_result made = forward(layer, text);
  backward(layer, made, numbers(rows * width, 1));
  EXPECT_FALSE(set[0].has_grad);
}

INSTANTIATE_TEST_SUITE_P(devices, embeddings, testing::ValuesIn(devices_under_test()),
                         name_of_device);

std::string refusal(parameter& table) {
  try {
    const nn::embedding made{table, "words"};
  } catch (const usage_error& refused) {
    return refused.what();
  }
  return "nothing was refused";
}

TEST(an_embedding, refuses_a_table_of_another_shape) {
  bench here{"cpu"};
  nn::parameter_set set{here.memory,
                        here.work,
                        {{"flat", {12}, nn::constant{}}, {"table", {4, 3}, nn::constant{}}},
                        1};
  EXPECT_EQ(refusal(set.at("flat")),
            "layer 'words': its table is of shape [12] and must be [vocabulary, width], each of 1 "
            "at least; give it such a one");
  EXPECT_EQ(refusal(set.at("table")), "nothing was refused");
  parameter halves;
  halves.value = set.at("table").value;
  halves.value.type = dtype::bf16;
  EXPECT_EQ(refusal(halves),
            "layer 'words': its table is bf16 of shape [4, 3] and must be f32 of shape [4, 3]; "
            "give it one of that shape");
}

}  // namespace
}  // namespace reprise::test
