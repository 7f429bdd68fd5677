// Text by a replayed step is that by an eager one, and the banks behind it have the same bits.
#include "workloads/memory/sampling.hpp"

#include "tests/memory/support.hpp"
#include "workloads/memory/comparison.hpp"
#include "workloads/memory/training.hpp"

namespace reprise {
namespace {

using memory::memory_options;
using memory::sample_result;

class sampling_on : public ::testing::TestWithParam<std::string> {
 protected:
  memory_options options(dtype storage = dtype::f32) const {
    memory_options o = test::small_options({});
    o.storage = storage;
    o.layers = 2;
    o.sample = 20;
    return o;
  }
  sample_result sampled(memory::sampling& with, const memory_options& o) {
    sample_result made;
    made.text = with.sample(o.prompt);
    made.banks = with.banks();
    return made;
  }

  device opened = test::open_for_test(GetParam(), 1);
};

INSTANTIATE_TEST_SUITE_P(devices, sampling_on, ::testing::ValuesIn(test::devices_under_test()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(sampling_on, a_replayed_sample_is_an_eager_one) {
  for (const dtype storage : {dtype::f32, dtype::bf16}) {
    const memory_options o = options(storage);
    memory::training trained{opened, o, true};
    memory::sampling replayed{trained.runs_on(), trained.parameters(), o, true};
    memory::sampling eager{trained.runs_on(), trained.parameters(), o, false};
    const sample_result one = sampled(replayed, o);
    EXPECT_EQ(difference(one, sampled(eager, o)), "");
    EXPECT_EQ(one.text.size(), 20U);
    EXPECT_EQ(replayed.counts().captured, 1U);
    EXPECT_EQ(replayed.counts().replayed, 22U);
    EXPECT_EQ(eager.counts().eager, 23U);
  }
}

TEST_P(sampling_on, each_sample_begins_with_the_trained_banks) {
  const memory_options o = options();
  memory::training trained{opened, o, true};
  memory::sampling with{trained.runs_on(), trained.parameters(), o, true};
  const sample_result one = sampled(with, o);
  with.sample("something else");
  EXPECT_EQ(difference(sampled(with, o), one), "");
}

TEST_P(sampling_on, a_sample_depends_on_what_was_read_before) {
  memory_options o = options();
  o.sample = 1;
  memory::training trained{opened, o, true};
  memory::sampling with{trained.runs_on(), trained.parameters(), o, true};
  with.sample("ab");
  const auto after_ab = with.banks();
  with.sample("bb");
  EXPECT_NE(with.banks(), after_ab);
}

TEST(a_difference_of_samples, names_the_place) {
  const std::vector<std::byte> bits(8, std::byte{1});
  sample_result one{"abc", {bits, bits}};
  sample_result other = one;
  EXPECT_EQ(difference(one, other), "");
  other.banks[1][5] = std::byte{2};
  EXPECT_EQ(difference(one, other), "sample, bank of layer 1, byte 5: the bits differ");
  other.text = "abd";
  EXPECT_EQ(difference(one, other), "sample, byte 2: the texts differ");
}

}  // namespace
}  // namespace reprise
