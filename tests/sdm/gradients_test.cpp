#include "reprise/sdm/gradients.hpp"

#include <functional>

#include "tests/ops/reference.hpp"
#include "tests/sdm/gradient_calls.hpp"

namespace reprise::test {
namespace {

using doubles = std::vector<double>;

// Each off by at most `tolerance` of itself.
template <class X>
void expect_the_digits(const std::vector<X>& got, const doubles& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(got[i]), want[i], tolerance * std::abs(want[i])) << i;
  }
}

// Where W = 1 a decay is a token's and its write's at once.
doubles of_decays(const memory_call& call, const doubles& by_write) {
  const auto each = static_cast<std::size_t>(call.sizes.writes / call.sizes.decays);
  doubles sums(call.g.size());
  for (std::size_t i = 0; i < by_write.size(); ++i) sums[i / each] += by_write[i];
  return sums;
}

template <class T>
view<const T> all(const std::vector<T>& values) {
  return {values.data(), values.size()};
}
template <class T>
view<T> all(std::vector<T>& values) {
  return {values.data(), values.size()};
}

class sdm_gradients_op : public op_on_device {
 protected:
  bool on_the_cpu() const { return GetParam() == "cpu"; }  // where alone there is f64
};
INSTANTIATE_TEST_SUITE_P(devices, sdm_gradients_op, testing::ValuesIn(plain_devices()),
                         device_case);

// Single writes; slots that nobody writes; runs that a thread takes alone and longer ones; slots
// that are hot: up to 256 events on one, of one write a token and of several.
const std::vector<sdm_sizes> event_sizes{
    {1, 4, 2, 3, 2, 2, 1, 2},      {2, 8, 3, 13, 3, 2, 3, 4},  {1, 500, 5, 20, 8, 8, 1, 16},
    {1, 6, 8, 50, 4, 1, 4, 50},    {3, 12, 4, 40, 3, 5, 1, 7}, {1, 3, 300, 40, 2, 3, 2, 16},
    {2, 1, 4, 70, 1, 1, 1, 32},    {1, 2, 3, 90, 1, 2, 1, 80}, {1, 1, 4, 150, 1, 1, 1, 128},
    {1, 2, 520, 128, 2, 2, 2, 128}};

TEST_P(sdm_gradients_op, gradients_of_events_are_the_sums_that_are_defined) {
  for (const sdm_sizes& sizes : event_sizes) {
    for (const bool some_left_out : {false, true}) {
      SCOPED_TRACE(testing::Message() << sizes.chunk << " tokens on " << sizes.slots << " slots");
      const memory_call call = random_call(sizes, {.seed = 4, .some_left_out = some_left_out});
      const event_tables exact = tables_of(call, in_doubles(call));
      event_tables floats = exact;
      for (doubles* one : {&floats.of_state, &floats.of_cotangent, &floats.of_both,
                           &floats.of_readings, &floats.of_errors}) {
        *one = rounded_to_floats(*one);
      }
      const event_gradients want = by_definition(call, floats);
      for (const place where : {place::aligned, place::shifted}) {
        const auto got = event_grads_on<float>(bench(), call, floats, where);
        expect_near_the_largest(got.dk, want.dk, 1e-6);
        expect_near_the_largest(got.dq, want.dq, 1e-6);
        expect_near_the_largest(got.dg_by_write, want.dg_by_write, 2e-6);
      }
      if (!on_the_cpu()) continue;
      const event_gradients wide_want = by_definition(call, exact);
      const auto got = event_grads_on<double>(bench(), call, exact);
      expect_near_the_largest(got.dk, wide_want.dk, 1e-14);
      expect_near_the_largest(got.dq, wide_want.dq, 1e-14);
      expect_near_the_largest(got.dg_by_write, wide_want.dg_by_write, 1e-14);
    }
  }
}

TEST_P(sdm_gradients_op, what_is_left_out_has_gradients_of_zero) {
  memory_call call = random_call({2, 30, 6, 20, 4, 3, 1, 8}, {.seed = 5});
  for (std::size_t i = 0; i < call.k_idx.size(); i += 3) call.k_idx[i] = i % 2 == 0 ? -7 : 60;
  for (std::size_t i = 0; i < call.q_idx.size(); i += 4) call.q_idx[i] = 2'000'000'000;
  const auto got = event_grads_on<float>(bench(), call, tables_of(call, in_doubles(call)));
  for (std::size_t i = 0; i < call.k_idx.size(); ++i) {
    EXPECT_EQ(got.dk[i] == 0 && got.dg_by_write[i] == 0, i % 3 == 0) << i;
  }
  for (std::size_t i = 0; i < call.q_idx.size(); ++i) EXPECT_EQ(got.dq[i] == 0, i % 4 == 0) << i;
}

// All terms of a decay's gradient have one sign here, and so have those of a weight's two sums, the
// second of which is nothing beside the first: what is lost is lost by the kernel.
TEST_P(sdm_gradients_op, a_strong_decay_costs_no_digits) {
  for (const sdm_sizes& sizes : {sdm_sizes{1, 2, 4, 6, 1, 1, 1, 6}, {1, 1, 4, 64, 1, 1, 1, 64}}) {
    memory_call call = random_call(sizes, {.seed = 6});
    for (std::size_t t = 0; t < call.g.size(); ++t)
      call.g[t] = t % 5 == 1 ? -30 : t % 5 == 3 ? 0 : -2;
    for (doubles* one : {&call.k_val, &call.q_val}) {
      for (double& value : *one) value = std::abs(value) + 0.125;
    }
    event_tables tables = tables_of(call, in_doubles(call));
    for (doubles* one : {&tables.of_state, &tables.of_cotangent, &tables.of_both,
                         &tables.of_readings, &tables.of_errors}) {
      for (double& value : *one) value = std::abs(value) + 0.25;
      *one = rounded_to_floats(*one);
    }
    for (double& value : tables.of_errors) value = -value;
    for (std::int64_t e = 0; e < sizes.events(); ++e) {                    // parts are one: D < 256
      if (e % 2 == 0) tables.of_state[static_cast<std::size_t>(e)] *= -1;  // of a write
    }
    const event_gradients want = by_definition(call, tables);
    const auto got = event_grads_on<float>(bench(), call, tables);
    expect_the_digits(got.dg_by_write, want.dg_by_write, 1e-5);
    expect_the_digits(got.dk, want.dk, 1e-5);
    expect_the_digits(got.dq, want.dq, 1e-5);
  }
}

TEST_P(sdm_gradients_op, gradients_of_tokens_have_the_bits_of_the_order_that_is_documented) {
  for (const std::int64_t width : {1, 5, 8, 255, 256, 300, 768}) {
    for (const std::int64_t decays : {1, 37}) {
      SCOPED_TRACE(testing::Message() << width << " columns, " << decays << " decays");
      const memory_call call = random_call({2, 40, width, 9, 37, 2, decays, 4}, {.seed = 7});
      const memory_run run = in_doubles(call);
      const auto by_write = numbers_as<float>(run.dg_by_write);
      const auto m = numbers_as<float>(run.m);
      const auto errors = numbers_as<float>(run.errors);
      token_gradients_of<float> want;
      for (std::size_t token = 0; token < call.beta.size(); ++token) {
        const auto beta = static_cast<float>(call.beta[token]);
        float total = 0;
        std::vector<float> lanes;
        for (std::int64_t j = 0; j < width; ++j) {
          const std::size_t at =
              token * static_cast<std::size_t>(width) + static_cast<std::size_t>(j);
          want.dv.push_back(beta * m[at]);
          if (j % 8 == 0) lanes.push_back(0);
          lanes.back() += m[at] * errors[at];
          if (j % 256 != 255 && j != width - 1) continue;
          total += in_slots(lanes, 32);
          lanes.clear();
        }
        want.dbeta.push_back(total);
        float sum = 0;
        for (std::size_t w = 0; w < 37; ++w) {
          if (decays != 1) want.dg.push_back(by_write[token * 37 + w]);
          sum += by_write[token * 37 + w];
        }
        if (decays == 1) want.dg.push_back(sum);
      }
      for (const place where : {place::aligned, place::shifted}) {
        const auto got = token_grads_on<float>(bench(), call, run, by_write, where);
        expect_same_bits(got.dv, want.dv);
        expect_same_bits(got.dbeta, want.dbeta);
        expect_same_bits(got.dg, want.dg);
      }
    }
  }
}

// From products to the gradients that the equations of the op have, one token at a time.
TEST_P(sdm_gradients_op, all_together_are_the_gradients_of_the_op) {
  for (const sdm_sizes& sizes : event_sizes) {
    for (const double strongest : {-0.1, -3.0, -30.0}) {
      SCOPED_TRACE(testing::Message()
                   << sizes.chunk << " tokens on " << sizes.slots << " slots, g to " << strongest);
      const memory_call call = random_call(
          sizes, {.seed = 8, .strongest_decay = strongest, .some_left_out = sizes.writes > 1});
      const memory_run run = in_doubles(call);
      const auto check = [&]<class X>(X, double tolerance) {
        event_tables tables = tables_of(call, run);
        const auto made = products_on<X>(bench(), call, run);
        tables.of_readings.assign(made.of_readings.begin(), made.of_readings.end());
        tables.of_errors.assign(made.of_errors.begin(), made.of_errors.end());
        const auto events = event_grads_on<X>(bench(), call, tables);
        const auto tokens = token_grads_on<X>(bench(), call, run, events.dg_by_write);
        expect_near_the_largest(events.dk, run.dk, tolerance);
        expect_near_the_largest(events.dq, run.dq, tolerance);
        expect_near_the_largest(tokens.dv, run.dv, tolerance);
        expect_near_the_largest(tokens.dbeta, run.dbeta, tolerance);
        expect_near_the_largest(tokens.dg, of_decays(call, run.dg_by_write), tolerance);
      };
      check(1.0F, 1e-5);
      if (on_the_cpu()) check(1.0, 1e-12);
    }
  }
}

TEST(sdm_gradients, agree_with_central_differences) {
  op_bench bench{"cpu"};
  for (const sdm_sizes& sizes : {sdm_sizes{2, 3, 2, 7, 2, 2, 1, 3}, {1, 2, 3, 6, 2, 1, 2, 4}}) {
    const memory_call call = random_call(sizes, {.seed = 9});
    const memory_run run = in_doubles(call);
    const auto events = event_grads_on<double>(bench, call, tables_of(call, run));
    const auto tokens = token_grads_on<double>(bench, call, run, events.dg_by_write);
    const auto slopes = [&](doubles memory_call::*input) {
      return central_differences(
          [&](const doubles& moved) {
            memory_call other = call;
            other.*input = moved;
            return loss_of(other);
          },
          call.*input);
    };
    expect_near_the_largest(events.dk, slopes(&memory_call::k_val), 1e-8);
    expect_near_the_largest(events.dq, slopes(&memory_call::q_val), 1e-8);
    expect_near_the_largest(tokens.dv, slopes(&memory_call::v), 1e-8);
    expect_near_the_largest(tokens.dbeta, slopes(&memory_call::beta), 1e-8);
    expect_near_the_largest(tokens.dg, slopes(&memory_call::g), 1e-8);
  }
}

TEST(sdm_gradients, the_cuts_between_threads_change_nothing) {
  op_bench alone{"cpu", 1};
  cpu_call call{{}, odd_pieces()};
  const memory_call of = random_call({2, 12, 70, 90, 3, 2, 1, 80}, {.seed = 10});
  const memory_run run = in_doubles(of);
  const event_tables tables = tables_of(of, run);
  const auto in = []<class T>(const std::vector<T>& from) { return read<T>{all(from)}; };
  const auto out = []<class T>(std::vector<T>& to) { return write<T>{all(to)}; };
  const auto floats = [](const doubles& from) { return numbers_as<float>(from); };

  const auto m = floats(run.m);
  const auto errors = floats(run.errors);
  const auto beta = floats(of.beta);
  const auto dy = floats(of.dy);
  product_tables<float> made = products_on<float>(alone, of, run);
  const product_tables<float> want = made;
  std::ranges::fill(made.of_readings, 9.0F);
  std::ranges::fill(made.of_errors, 9.0F);
  sdm::products_cpu<float>(call, in(dy), in(m), in(errors), in(beta), out(made.of_readings),
                           out(made.of_errors), of.sizes);
  expect_same_bits(made.of_readings, want.of_readings);
  expect_same_bits(made.of_errors, want.of_errors);

  const auto want_events = event_grads_on<float>(alone, of, tables);
  auto events = want_events;
  for (auto* one : {&events.dk, &events.dq, &events.dg_by_write}) std::ranges::fill(*one, 9.0F);
  const auto k_val = floats(of.k_val);
  const auto q_val = floats(of.q_val);
  const auto of_state = floats(tables.of_state);
  const auto of_cotangent = floats(tables.of_cotangent);
  const auto of_both = floats(tables.of_both);
  const auto of_readings = floats(tables.of_readings);
  const auto of_errors = floats(tables.of_errors);
  sdm::event_grads_cpu<float>(call, in(tables.order), in(tables.place), in(tables.runs), in(k_val),
                              in(q_val), in(tables.level), in(of_state), in(of_cotangent),
                              in(of_both), in(of_readings), in(of_errors), out(events.dk),
                              out(events.dq), out(events.dg_by_write), of.sizes);
  expect_same_bits(events.dk, want_events.dk);
  expect_same_bits(events.dq, want_events.dq);
  expect_same_bits(events.dg_by_write, want_events.dg_by_write);

  const auto want_tokens = token_grads_on<float>(alone, of, run, events.dg_by_write);
  auto tokens = want_tokens;
  for (auto* one : {&tokens.dv, &tokens.dbeta, &tokens.dg}) std::ranges::fill(*one, 9.0F);
  sdm::token_grads_cpu<float>(call, in(m), in(errors), in(beta), in(events.dg_by_write),
                              out(tokens.dv), out(tokens.dbeta), out(tokens.dg), of.sizes);
  expect_same_bits(tokens.dv, want_tokens.dv);
  expect_same_bits(tokens.dbeta, want_tokens.dbeta);
  expect_same_bits(tokens.dg, want_tokens.dg);
}

TEST(sdm_gradients, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  std::vector<sdm_sizes> all_sizes = event_sizes;
  all_sizes.push_back({2, 900, 768, 300, 32, 32, 1, 128});
  all_sizes.push_back({1, 40, 24, 1000, 2, 3, 2, 512});
  all_sizes.push_back({1, 4, 768, 128, 1, 1, 1, 64});
  for (const sdm_sizes& sizes : all_sizes) {
    SCOPED_TRACE(testing::Message() << sizes.chunk << " tokens on " << sizes.slots << " slots");
    const memory_call call = random_call(sizes, {.seed = 11, .some_left_out = true});
    const memory_run run = in_doubles(call);
    const event_tables tables = tables_of(call, run);
    const auto products = products_on<float>(cuda, call, run);
    const auto want_products = products_on<float>(cpu, call, run);
    expect_same_bits(products.of_readings, want_products.of_readings);
    expect_same_bits(products.of_errors, want_products.of_errors);
    const auto events = event_grads_on<float>(cuda, call, tables);
    const auto want = event_grads_on<float>(cpu, call, tables);
    expect_same_bits(events.dk, want.dk);
    expect_same_bits(events.dq, want.dq);
    expect_same_bits(events.dg_by_write, want.dg_by_write);
    const auto tokens = token_grads_on<float>(cuda, call, run, want.dg_by_write);
    const auto want_tokens = token_grads_on<float>(cpu, call, run, want.dg_by_write);
    expect_same_bits(tokens.dv, want_tokens.dv);
    expect_same_bits(tokens.dbeta, want_tokens.dbeta);
    expect_same_bits(tokens.dg, want_tokens.dg);
  }
}

TEST_P(sdm_gradients_op, without_tokens_nothing_is_touched) {
  const memory_call call = random_call({2, 4, 3, 0, 2, 2, 1, 4});
  const memory_run run = in_doubles(call);
  EXPECT_TRUE(products_on<float>(bench(), call, run).of_errors.empty());
  EXPECT_TRUE(event_grads_on<float>(bench(), call, tables_of(call, run)).dk.empty());
  EXPECT_TRUE(token_grads_on<float>(bench(), call, run, {}).dv.empty());
}

TEST_P(sdm_gradients_op, refuse_sizes_that_do_not_fit) {
  const memory_call call = random_call({2, 4, 3, 5, 2, 2, 1, 4});
  const memory_run run = in_doubles(call);
  const event_tables tables = tables_of(call, run);
  const auto refuses = [&](const std::function<void(memory_call&)>& change,
                           const std::function<void(const memory_call&)>& with) {
    memory_call changed = call;
    change(changed);
    EXPECT_THROW(with(changed), usage_error);
  };
  const auto products_of = [&](const memory_call& c) { products_on<float>(bench(), c, run); };
  const auto events_of = [&](const memory_call& c) { event_grads_on<float>(bench(), c, tables); };
  const auto tokens_of = [&](const memory_call& c) {
    token_grads_on<float>(bench(), c, run, numbers_as<float>(run.dg_by_write));
  };
  refuses([](memory_call& c) { c.dy.pop_back(); }, products_of);
  refuses([](memory_call& c) { c.beta.push_back(0); }, products_of);
  refuses([](memory_call& c) { c.sizes.width = 4; }, products_of);
  refuses([](memory_call& c) { c.sizes.chunk = 0; }, events_of);
  refuses([](memory_call& c) { c.k_val.pop_back(); }, events_of);
  refuses([](memory_call& c) { c.q_val.push_back(0); }, events_of);
  refuses([](memory_call& c) { c.sizes.chunk = 3; }, events_of);
  refuses([](memory_call& c) { c.sizes.width = 300; }, events_of);
  refuses([](memory_call& c) { c.beta.pop_back(); }, tokens_of);
  refuses([](memory_call& c) { c.g.pop_back(); }, tokens_of);
  refuses([](memory_call& c) { c.sizes.decays = 2; }, tokens_of);
}

}  // namespace
}  // namespace reprise::test
