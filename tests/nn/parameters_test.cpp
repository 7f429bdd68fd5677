// The parameters of a network: where they lie, how they begin, and moving them in and out.
#include "reprise/nn/parameters.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/nn/support.hpp"

namespace reprise::test {
namespace {

nn::parameter_specs some_specs() {
  return nn::joined({nn::linear_parameters("in", 5, 9), nn::norm_parameters("norm", 5)});
}

std::string refusal(const std::function<void()>& of) {
  try {
    of();
  } catch (const usage_error& refused) {
    return refused.what();
  }
  return "nothing was refused";
}

class parameters : public on_each_device {};

TEST_P(parameters, lie_one_behind_the_other_with_their_gradients) {
  nn::parameter_set set{here.memory, here.work, some_specs(), 1};
  ASSERT_EQ(set.size(), 4U);
  for (std::size_t i = 0; i < set.size(); ++i) {
    EXPECT_EQ(set[i].value.data, reinterpret_cast<std::byte*>(set.values().data() + set.begin(i)));
    EXPECT_EQ(set[i].grad.data,
              reinterpret_cast<std::byte*>(set.gradients().data() + set.begin(i)));
    EXPECT_EQ(set[i].value.shape, set[i].grad.shape);
    EXPECT_EQ(set.end(i) - set.begin(i), set[i].value.shape.count());
    EXPECT_FALSE(set[i].has_grad);
    EXPECT_EQ(set.begin(i) * sizeof(float) % 256, 0U);
    if (i == 0) continue;
    EXPECT_GE(set.begin(i), set.end(i - 1));
  }
}

TEST_P(parameters, have_zeros_between_them) {
  nn::parameter_set set{here.memory, here.work, some_specs(), 1};
  const std::vector<float> values = read_back<float>(here.work, set.values());
  const std::vector<float> gradients = read_back<float>(here.work, set.gradients());
  for (std::size_t i = 0; i < set.size(); ++i) {
    const std::size_t next = i + 1 == set.size() ? set.elements() : set.begin(i + 1);
    for (std::size_t at = set.end(i); at < next; ++at) EXPECT_EQ(values[at], 0.0F);
  }
  EXPECT_EQ(std::ranges::count(gradients, 0.0F), static_cast<std::ptrdiff_t>(set.elements()));
}

TEST_P(parameters, begin_as_their_seed_says) {
  const nn::parameter_set set{here.memory, here.work, some_specs(), 1};
  const nn::parameter_set same{here.memory, here.work, some_specs(), 1};
  const nn::parameter_set other{here.memory, here.work, some_specs(), 2};
  const auto stored = set.to_host(here.work);
  EXPECT_TRUE(same_bits(stored[0].values, same.to_host(here.work)[0].values));
  EXPECT_FALSE(same_bits(stored[0].values, other.to_host(here.work)[0].values));
  EXPECT_EQ(stored[0].name, "in.weight");
  EXPECT_EQ(stored[0].shape, (dims{5, 9}));
  const auto [least, most] = std::ranges::minmax(stored[0].values);
  EXPECT_GE(least, -1.0F / 3);
  EXPECT_LT(most, 1.0F / 3);
  EXPECT_GT(most - least, 0.5F) << "45 numbers over a range of 2 / 3";
  EXPECT_EQ(stored[2].values, std::vector<float>(5, 1.0F));
  EXPECT_EQ(stored[3].values, std::vector<float>(5, 0.0F));
  EXPECT_NE(stored[0].values[0], stored[1].values[0]) << "each draws numbers of its own";
}

TEST_P(parameters, are_found_by_name) {
  nn::parameter_set set{here.memory, here.work, some_specs(), 1};
  EXPECT_EQ(set.find("norm.bias"), &set[3]);
  EXPECT_EQ(&set.at("in.bias"), &set[1]);
  EXPECT_EQ(set.find("out.bias"), nullptr);
  EXPECT_EQ(refusal([&] { set.at("out.bias"); }),
            "there is no parameter 'out.bias' among 4; give the name of one");
}

TEST_P(parameters, drop_their_gradients_without_touching_memory) {
  nn::parameter_set set{here.memory, here.work, some_specs(), 1};
  set[0].has_grad = set[3].has_grad = true;
  const std::uint64_t before = (*here.calls)[seam_call::fill];
  set.drop_gradients();
  EXPECT_EQ((*here.calls)[seam_call::fill], before);
  for (std::size_t i = 0; i < set.size(); ++i) EXPECT_FALSE(set[i].has_grad);
}

TEST_P(parameters, come_back_from_the_host_as_another_version) {
  nn::parameter_set from{here.memory, here.work, some_specs(), 1};
  nn::parameter_set to{here.memory, here.work, some_specs(), 2};
  auto stored = from.to_host(here.work);
  std::ranges::reverse(stored);  // names say where they belong
  const std::uint64_t version = to[0].version.value();
  to.from_host(here.work, stored);
  EXPECT_GT(to[0].version.value(), version);
  EXPECT_TRUE(same_bits(read_back<float>(here.work, from.values()),
                        read_back<float>(here.work, to.values())));
}

TEST_P(parameters, of_another_network_are_refused_and_change_nothing) {
  nn::parameter_set set{here.memory, here.work, some_specs(), 1};
  const std::vector<float> before = read_back<float>(here.work, set.values());
  const auto good = set.to_host(here.work);
  const std::uint64_t version = set[0].version.value();
  const auto expect = [&](const std::function<void(std::vector<nn::stored_parameter>&)>& spoil,
                          const std::string& why) {
    auto bad = good;
    for (float& value : bad[0].values) value += 1;
    spoil(bad);
    EXPECT_EQ(refusal([&] { set.from_host(here.work, bad); }), why);
  };
  expect([](auto& all) { all.pop_back(); },
         "parameter 'norm.bias' is not stored; give values of one network");
  expect([](auto& all) { all.push_back(all[1]); },
         "parameter 'in.bias' is stored twice; give it once");
  expect([](auto& all) { all[1].name = "out.bias"; },
         "parameter 'out.bias' is stored and unknown here; give values of one network");
  expect([](auto& all) { all[2].values.pop_back(); },
         "parameter 'norm.gain' is stored as 4 values of shape [5] and is [5] here; give values of "
         "one network");
  EXPECT_EQ(set[0].version.value(), version);
  EXPECT_TRUE(same_bits(read_back<float>(here.work, set.values()), before));
}

TEST_P(parameters, that_have_one_name_or_no_size_are_refused) {
  EXPECT_EQ(
      refusal([&] {
        nn::parameter_set{
            here.memory, here.work, {{"a", {1}, nn::constant{}}, {"a", {2}, nn::constant{}}}, 1};
      }),
      "parameter 'a' is there twice; give each a name of its own");
  EXPECT_EQ(refusal([&] {
              nn::parameter_set{here.memory, here.work, {{"a", {any, 2}, nn::constant{}}}, 1};
            }),
            "parameter 'a': its shape [any, 2] is open; give every extent");
  EXPECT_EQ(refusal([&] { nn::uniform_over(0); }),
            "uniform_over(0): a layer sums over one input at least; give its count");
}

INSTANTIATE_TEST_SUITE_P(devices, parameters, testing::ValuesIn(devices_under_test()),
                         name_of_device);

}  // namespace
}  // namespace reprise::test
