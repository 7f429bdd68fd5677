// The memory op as a differentiable op: its numbers are those of the equations, its replays have
// the bits of eager runs, and what it makes of a bank can be read, brought and trained.
#include "reprise/sdm/op.hpp"

#include <cmath>
#include <limits>

#include "reprise/grad/graphed_op.hpp"
#include "tests/nn/support.hpp"
#include "tests/sdm/plain_memory.hpp"

namespace reprise::test {
namespace {

constexpr sdm_sizes small{.streams = 2,
                          .slots = 30,
                          .width = 12,
                          .tokens = 21,
                          .writes = 3,
                          .reads = 4,
                          .decays = 1,
                          .chunk = 8};

using host_values = std::vector<double>;

std::vector<float> floats(const host_values& values) {
  return {values.begin(), values.end()};
}

// Over the largest magnitude.
double gap(const std::vector<float>& is, const host_values& should) {
  double largest = 0;
  double off = 0;
  for (std::size_t i = 0; i < should.size(); ++i) {
    largest = std::max(largest, std::abs(should[i]));
    off = std::max(off, std::abs(static_cast<double>(is[i]) - should[i]));
  }
  return off / largest;
}

template <class B>
std::vector<float> host_floats(bench& on, const tensor<B>& from) {
  std::vector<float> values;
  for (const B one : read_back<B>(on.work, from.get())) values.push_back(widen(one));
  return values;
}

host_values d_values(const memory_call& c, const memory_run& run) {
  host_values dv = run.m;
  for (std::size_t i = 0; i < dv.size(); ++i) {
    dv[i] *= c.beta[i / static_cast<std::size_t>(c.sizes.width)];
  }
  return dv;
}

host_values d_decays(const memory_call& c, const memory_run& run) {
  host_values dg(c.g.size());
  const std::size_t writes_of_one = run.dg_by_write.size() / dg.size();
  for (std::size_t i = 0; i < run.dg_by_write.size(); ++i) {
    dg[i / writes_of_one] += run.dg_by_write[i];
  }
  return dg;
}

class memory_op : public on_each_device {
 protected:
  // A call's operands on the device.
  struct uploaded {
    buffer<std::int32_t> k_idx, q_idx;
    buffer<float> k_val, v, beta, g, q_val, dy;
  };
  uploaded upload_call(const memory_call& c) {
    return {on_device(here, c.k_idx),         on_device(here, c.q_idx),
            on_device(here, floats(c.k_val)), on_device(here, floats(c.v)),
            on_device(here, floats(c.beta)),  on_device(here, floats(c.g)),
            on_device(here, floats(c.q_val)), on_device(here, floats(c.dy))};
  }
  template <class B>
  static std::vector<operand> operands_of(const sparse_delta_memory<B>& op, const sdm_sizes& s,
                                          const uploaded& on) {
    const std::int64_t p = s.streams, t = s.tokens;
    return {operand{op.k_idx(on.k_idx.all(), {p, t, s.writes})},
            operand{op.k_val(on.k_val.all(), {p, t, s.writes})},
            operand{op.v(on.v.all(), {p, t, s.width})},
            operand{op.beta(on.beta.all(), {p, t, 1})},
            operand{op.g(on.g.all(), {p, t, s.decays})},
            operand{op.q_idx(on.q_idx.all(), {p, t, s.reads})},
            operand{op.q_val(on.q_val.all(), {p, t, s.reads})}};
  }
  static operand cotangent(const output<float>& of, const uploaded& on) {
    return gradient_of(of, view<const float>{on.dy.all()});
  }

  struct results {
    std::vector<float> readings, k_val, v, beta, g, q_val;

    bool operator==(const results& other) const {
      return same_bits(readings, other.readings) && same_bits(k_val, other.k_val) &&
             same_bits(v, other.v) && same_bits(beta, other.beta) && same_bits(g, other.g) &&
             same_bits(q_val, other.q_val);
    }
  };
  template <class B>
  results results_of(const sparse_delta_memory<B>& op, const forward_result& made,
                     const grad_result& formed) {
    return {host_of(here, made[op.readings]), host_of(here, formed[op.k_val]),
            host_of(here, formed[op.v]),      host_of(here, formed[op.beta]),
            host_of(here, formed[op.g]),      host_of(here, formed[op.q_val])};
  }

  // Windows of three forwards and then their backwards: results in order, and the gradient of the
  // initial bank.
  template <class B>
  std::pair<std::vector<results>, std::vector<float>> train(const sdm_options& how,
                                                            const graphed_options& options,
                                                            grad_counts& counts) {
    nn::parameter_set set{
        here.memory, here.work, {{"bank", {how.sizes.slots, how.sizes.width}, nn::uniform{1}}}, 9};
    graphed_op op{sparse_delta_memory<B>{how, set[0]}, budget, options};
    std::vector<results> all;
    for (std::uint64_t round = 0; round < 3; ++round) {
      set.drop_gradients();
      std::vector<uploaded> on;
      std::vector<forward_result> made;
      for (std::uint64_t i = 0; i < 3; ++i) {
        on.push_back(upload_call(random_call(how.sizes, {.seed = 10 * round + i + 1})));
        made.push_back(op.forward(here.work, operands_of(op.op(), how.sizes, on.back())));
      }
      for (std::size_t i = 0; i < 3; ++i) {
        const grad_result formed =
            op.backward(here.work, made[i].ticket, {cotangent(op.op().readings, on[i])});
        all.push_back(results_of(op.op(), made[i], formed));
      }
    }
    counts = op.counts();
    return {all, gradient_of_parameter(here, set[0])};
  }
};

TEST_P(memory_op, has_the_numbers_of_its_equations) {
  for (const std::int64_t decays : {1, 3}) {
    sdm_sizes s = small;
    s.decays = decays;
    const memory_call c = random_call(s, {.seed = 3});
    const memory_run plain = in_doubles(c);
    const uploaded on = upload_call(c);
    const buffer<float> bank = on_device(here, floats(c.bank));
    const buffer<float> above = on_device(here, floats(c.d_final));
    graphed_op op{sparse_delta_memory<float>{{.sizes = s}}, budget};
    std::vector<operand> given = operands_of(op.op(), s, on);
    given.push_back(operand{op.op().bank(view<const float>{bank.all()})});
    for (int again = 0; again < 3; ++again) {  // captured, then replayed
      const forward_result made = op.forward(here.work, given);
      auto final_bank = made.state(op.op().final_bank);
      EXPECT_LT(gap(host_floats(here, final_bank.read(here.work)), plain.final_bank), 1e-6);
      const grad_result formed =
          op.backward(here.work, made.ticket,
                      {cotangent(op.op().readings, on),
                       gradient_of(op.op().final_bank, view<const float>{above.all()})});
      const results found = results_of(op.op(), made, formed);
      EXPECT_LT(gap(found.readings, plain.readings), 2e-6);
      EXPECT_LT(gap(found.k_val, plain.dk), 5e-6);
      EXPECT_LT(gap(found.v, d_values(c, plain)), 5e-6);
      EXPECT_LT(gap(found.beta, plain.dbeta), 5e-6);
      EXPECT_LT(gap(found.g, d_decays(c, plain)), 5e-6);
      EXPECT_LT(gap(found.q_val, plain.dq), 5e-6);
      EXPECT_LT(gap(host_floats(here, formed[op.op().bank]), plain.d_bank), 5e-6);
    }
    EXPECT_EQ(op.counts().forward_replay, 2U);
    EXPECT_EQ(op.counts().backward_replay, 2U);
  }
}

TEST_P(memory_op, replayed_has_the_bits_of_eager_runs_under_every_policy) {
  const auto same = [&]<class B>(B, saved_rows rows, bool wide) {
    const sdm_options how{.sizes = small, .rows = rows, .wide_bank_grad = wide};
    grad_counts counts;
    const auto expected = train<B>(how, {.record = false}, counts);
    EXPECT_EQ(counts.eager_forwards(), 9U);
    EXPECT_EQ(counts.eager_backwards(), 9U);

    EXPECT_EQ(train<B>(how, {.conflict = hold{}}, counts), expected);
    EXPECT_EQ(counts.forward_replay, 2U);
    EXPECT_EQ(counts.backward_replay, 2U);
    EXPECT_EQ(counts.eager_forwards(), 6U);
    EXPECT_EQ(train<B>(how, {.conflict = recompute{}}, counts), expected);
    EXPECT_EQ(counts.forward_replay, 8U);
    EXPECT_EQ(counts.backward_replay, 8U);
    EXPECT_EQ(counts.stale_replay, 9U);
    EXPECT_EQ(train<B>(how, {.conflict = slots{3}}, counts), expected);
    EXPECT_EQ(counts.forward_replay, 6U);
    EXPECT_EQ(counts.backward_replay, 6U);
    EXPECT_EQ(counts.stale_replay, 0U);
  };
  same(float{}, saved_rows::as_stored, false);
  same(bf16{}, saved_rows::as_stored, false);
  same(bf16{}, saved_rows::as_stored, true);
  same(bf16{}, saved_rows::fp8, false);
  same(float{}, saved_rows::int4, false);
}

TEST_P(memory_op, runs_its_forward_again_for_a_second_backward) {
  const memory_call c = random_call(small, {.seed = 3});
  const uploaded on = upload_call(c);
  graphed_op op{sparse_delta_memory<float>{{.sizes = small}}, budget, {.conflict = recompute{}}};
  results first;
  for (int again = 0; again < 2; ++again) {
    const forward_result made = op.forward(here.work, operands_of(op.op(), small, on));
    for (int twice = 0; twice < 2; ++twice) {
      const grad_result formed =
          op.backward(here.work, made.ticket, {cotangent(op.op().readings, on)});
      const results found = results_of(op.op(), made, formed);
      if (again + twice == 0) first = found;
      EXPECT_TRUE(found == first) << "forward " << again << ", backward " << twice;
    }
  }
  EXPECT_EQ(op.counts().stale_replay, 2U);
}

TEST_P(memory_op, sums_the_gradients_of_all_streams_into_the_initial_bank) {
  nn::parameter_set set{
      here.memory, here.work, {{"bank", {small.slots, small.width}, nn::uniform{1}}}, 9};
  memory_call c = random_call(small, {.seed = 3});  // whose streams begin with the parameter
  std::fill(c.d_final.begin(), c.d_final.end(), 0.0);
  const std::vector<float> initial = set.to_host(here.work)[0].values;
  for (std::size_t i = 0; i < c.bank.size(); ++i) {
    c.bank[i] = static_cast<double>(initial[i % initial.size()]);
  }
  const memory_run of = in_doubles(c);
  host_values expected(initial.size());
  for (std::size_t i = 0; i < of.d_bank.size(); ++i) expected[i % initial.size()] += of.d_bank[i];

  const uploaded on = upload_call(c);
  graphed_op op{sparse_delta_memory<float>{{.sizes = small}, set[0]}, budget};
  for (int again = 0; again < 2; ++again) {
    set.drop_gradients();
    const forward_result made = op.forward(here.work, operands_of(op.op(), small, on));
    op.backward(here.work, made.ticket, {cotangent(op.op().readings, on)});
    EXPECT_LT(gap(gradient_of_parameter(here, set[0]), expected), 5e-6);
  }
}

// The rounding of a row is over the largest of its elements, or of its group's.
TEST_P(memory_op, with_quantised_rows_has_gradients_near_those_of_stored_ones) {
  memory_call c = random_call(small, {.seed = 3});
  std::fill(c.bank.begin(), c.bank.end(), 0.0);
  std::fill(c.d_final.begin(), c.d_final.end(), 0.0);
  const memory_run plain = in_doubles(c);
  const uploaded on = upload_call(c);
  for (const auto& [rows, bound] : {std::pair{saved_rows::fp8, 0.05}, {saved_rows::int4, 0.2}}) {
    graphed_op op{sparse_delta_memory<float>{{.sizes = small, .rows = rows}}, budget};
    const forward_result made = op.forward(here.work, operands_of(op.op(), small, on));
    const grad_result formed =
        op.backward(here.work, made.ticket, {cotangent(op.op().readings, on)});
    const results found = results_of(op.op(), made, formed);
    EXPECT_LT(gap(found.readings, plain.readings), 2e-6);
    EXPECT_LT(gap(found.v, d_values(c, plain)), 5e-6);  // of weights and cotangents alone
    EXPECT_LT(gap(found.k_val, plain.dk), bound);
    EXPECT_GT(gap(found.k_val, plain.dk), 1e-5) << "nothing was quantised";
    EXPECT_LT(gap(found.q_val, plain.dq), bound);
    EXPECT_LT(gap(found.g, d_decays(c, plain)), bound);
  }
}

TEST_P(memory_op, differs_by_rounding_alone_in_other_chunks) {
  const memory_call c = random_call(small, {.seed = 3});
  const uploaded on = upload_call(c);
  results first;
  for (const std::int64_t chunk : {1, 2, 7, 8, 21, 64}) {
    sdm_sizes s = small;
    s.chunk = chunk;
    graphed_op op{sparse_delta_memory<float>{{.sizes = s}}, budget};
    const forward_result made = op.forward(here.work, operands_of(op.op(), s, on));
    const results found = results_of(
        op.op(), made, op.backward(here.work, made.ticket, {cotangent(op.op().readings, on)}));
    if (chunk == 1) first = found;
    const auto near = [](const std::vector<float>& a, const std::vector<float>& b) {
      return gap(a, {b.begin(), b.end()});
    };
    EXPECT_LT(near(found.readings, first.readings), 2e-6) << chunk;
    EXPECT_LT(near(found.k_val, first.k_val), 5e-6) << chunk;
    EXPECT_LT(near(found.g, first.g), 5e-6) << chunk;
  }
}

// e^g is 0 for both of them: what a slot held is forgotten, and later decays keep their digits.
TEST_P(memory_op, forgets_all_where_a_decay_is_infinite_or_a_mask) {
  for (const double mask : {-std::numeric_limits<double>::infinity(), -1e30}) {
    memory_call c = random_call(small, {.seed = 3});
    memory_call finite = c;
    for (std::size_t i = 0; i < c.g.size(); i += 5) {
      c.g[i] = mask;
      finite.g[i] = -500;
    }
    std::fill(finite.bank.begin(), finite.bank.end(), 0.0);
    std::fill(finite.d_final.begin(), finite.d_final.end(), 0.0);
    const memory_run plain = in_doubles(finite);
    const uploaded on = upload_call(c);
    for (const std::int64_t chunk : {1, 8}) {
      sdm_sizes s = small;
      s.chunk = chunk;
      graphed_op op{sparse_delta_memory<float>{{.sizes = s}}, budget};
      const forward_result made = op.forward(here.work, operands_of(op.op(), s, on));
      const results found = results_of(
          op.op(), made, op.backward(here.work, made.ticket, {cotangent(op.op().readings, on)}));
      EXPECT_LT(gap(found.readings, plain.readings), 2e-6);
      EXPECT_LT(gap(found.k_val, plain.dk), 5e-6);
      EXPECT_LT(gap(found.g, d_decays(finite, plain)), 5e-6);
    }
  }
}

TEST_P(memory_op, of_no_tokens_leaves_the_bank_and_passes_its_cotangent_on) {
  sdm_sizes none = small;
  none.tokens = 0;
  const memory_call c = random_call(none, {.seed = 3});
  const uploaded on = upload_call(c);
  const buffer<float> bank = on_device(here, floats(c.bank));
  graphed_op op{sparse_delta_memory<float>{{.sizes = none}}, budget};
  std::vector<operand> given = operands_of(op.op(), none, on);
  given.push_back(operand{op.op().bank(view<const float>{bank.all()})});
  for (int again = 0; again < 2; ++again) {
    const forward_result made = op.forward(here.work, given);
    auto state = made.state(op.op().final_bank);
    EXPECT_TRUE(same_bits(host_floats(here, state.read(here.work)), floats(c.bank)));
    const grad_result formed = op.backward(
        here.work, made.ticket, {gradient_of(op.op().final_bank, view<const float>{bank.all()})});
    EXPECT_TRUE(same_bits(host_floats(here, formed[op.op().bank]), floats(c.bank)));
  }
}

TEST_P(memory_op, refuses_a_bank_beside_a_parameter_and_sizes_that_do_not_fit) {
  const memory_call c = random_call(small, {.seed = 3});
  const uploaded on = upload_call(c);
  const buffer<float> bank = on_device(here, floats(c.bank));
  nn::parameter_set set{
      here.memory, here.work, {{"bank", {small.slots, small.width}, nn::uniform{1}}}, 9};
  graphed_op op{sparse_delta_memory<float>{{.sizes = small}, set[0]}, budget};
  std::vector<operand> given = operands_of(op.op(), small, on);
  given.push_back(operand{op.op().bank(view<const float>{bank.all()})});
  EXPECT_THROW(op.forward(here.work, given), usage_error);

  // A v of no tokens beside others that have some: nothing would be written for them.
  graphed_op none{sparse_delta_memory<float>{{.sizes = small}}, budget};
  std::vector<operand> fewer = operands_of(none.op(), small, on);
  const buffer<float> empty{here.memory, 0, here.work};
  fewer[2] = operand{none.op().v(empty.all(), {small.streams, 0, small.width})};
  EXPECT_THROW(none.forward(here.work, fewer), usage_error);

  sdm_sizes other = small;
  other.slots = 31;
  EXPECT_THROW((sparse_delta_memory<float>{{.sizes = other}, set[0]}), usage_error);
  other = small;
  other.writes = 31;
  EXPECT_THROW((sparse_delta_memory<float>{{.sizes = other}}), usage_error);
  other = small;
  other.chunk = 4096;
  EXPECT_THROW((sparse_delta_memory<float>{{.sizes = other}}), usage_error);
}

INSTANTIATE_TEST_SUITE_P(devices, memory_op, testing::ValuesIn(devices_under_test()),
                         name_of_device);

}  // namespace
}  // namespace reprise::test
