// The passes without the runtime, whose backward runs the forward again: a context has one
// backward.
#include "reprise/sdm/passes.hpp"

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

class memory_passes : public on_each_device {};

TEST_P(memory_passes, used_alone_refuse_a_second_backward_of_one_context) {
  const memory_call c = random_call(small, {.seed = 3});
  const auto floats = [&](const std::vector<double>& values) {
    return on_device(here, std::vector<float>(values.begin(), values.end()));
  };
  const buffer<std::int32_t> k_idx = on_device(here, c.k_idx);
  const buffer<std::int32_t> q_idx = on_device(here, c.q_idx);
  const buffer<float> k_val = floats(c.k_val), v = floats(c.v), beta = floats(c.beta);
  const buffer<float> g = floats(c.g), q_val = floats(c.q_val), dy = floats(c.dy);
  std::vector<block> kept;
  const auto room = [&]<class T>(const dims& shape) {
    kept.emplace_back(here.memory, shape.count() * sizeof(T), here.work);
    return view<T>{reinterpret_cast<T*>(kept.back().data()), shape.count()};
  };
  const auto named = [&]<class T>(std::string_view, const dims& shape) {
    return room.template operator()<T>(shape);
  };
  const buffer<float> bank = floats(c.bank);
  const buffer<float> cotangent = on_device(here, std::vector<float>(c.bank.size()));
  const sdm_inputs<float> in{k_idx.all(), k_val.all(), v.all(),    beta.all(),
                             g.all(),     q_idx.all(), q_val.all()};
  auto context = make_context<float>(small, saved_rows::as_stored, named);
  const auto value = [&](std::size_t count) {
    return room.template operator()<float>(dims{static_cast<std::int64_t>(count)});
  };
  const sdm_gradients<float> to{value(c.k_val.size()), value(c.v.size()), value(c.beta.size()),
                                value(c.g.size()), value(c.q_val.size())};
  const auto forward = [&] {
    sdm_forward<float>(here.work, small, saved_rows::as_stored, in, context, bank.all(),
                       make_forward_scratch<float>(small, room), value(c.v.size()));
  };
  const auto backward = [&] {
    sdm_backward<float, float>(here.work, small, saved_rows::as_stored, in, context, bank.all(),
                               dy.all(), cotangent.all(), make_backward_scratch<float>(small, room),
                               to);
  };
  forward();
  backward();
  EXPECT_TRUE(same_bits(read_back<float>(here.work, bank.all()),
                        std::vector<float>(c.bank.begin(), c.bank.end())));
  EXPECT_THROW(backward(), usage_error);
  forward();
  EXPECT_NO_THROW(backward());
}

INSTANTIATE_TEST_SUITE_P(devices, memory_passes, testing::ValuesIn(devices_under_test()),
                         name_of_device);

}  // namespace
}  // namespace reprise::test
