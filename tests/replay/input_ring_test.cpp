// Inputs that a recording brings itself, out of pinned slots.
#include "reprise/replay/input_ring.hpp"

#include <numeric>

#include "reprise/replay/recorder.hpp"
#include "tests/replay/support.hpp"

namespace reprise::test {
namespace {

// Three inputs of any sizes, and each comes out as it went in.
class passing {
 public:
  signature declared{"passing"};
  const input<float> a = declared.in<float>("a", {any});
  const input<std::uint8_t> b = declared.in<std::uint8_t>("b", {any});
  const input<float> c = declared.in<float>("c", {any});
  const output<float> of_a = declared.out<float>("of a");
  const output<std::uint8_t> of_b = declared.out<std::uint8_t>("of b");
  const output<float> of_c = declared.out<float>("of c");
  const step what{declared, [this](step_scope& run) {
                    copy(run, read(run[a]), write(run.make(of_a, run.shape(a))));
                    copy(run, read(run[b]), write(run.make(of_b, run.shape(b))));
                    copy(run, read(run[c]), write(run.make(of_c, run.shape(c))));
                  }};
};

class input_ring_on : public testing::TestWithParam<std::string> {
 protected:
  bench on_{GetParam()};
  passing step_;
  eager_runner eager_{on_.opened};
  recorder maker_{on_.opened, eager_};
};

TEST_P(input_ring_on, brings_inputs_of_every_size_whole) {
  for (const std::size_t size : {1U, 3U, 4U, 63U, 64U, 65U, 1000U, 70000U, 1500001U}) {
    SCOPED_TRACE(size);
    std::vector<float> a(size), c{7};
    std::vector<std::uint8_t> b(size + 13);
    std::iota(a.begin(), a.end(), 1.0F);
    std::iota(b.begin(), b.end(), std::uint8_t{1});
    recorded done = maker_.record(
        on_.work, step_.what, {step_.a.from_host(a), step_.b.from_host(b), step_.c.from_host(c)});
    ASSERT_TRUE(done.made.has_value());
    ASSERT_GT(done.made->staging_slots(), 0U);
    ASSERT_EQ(done.first.how, ran::captured);
    ASSERT_EQ(read_back(on_.work, done.first[step_.of_a].get()), a);
    ASSERT_EQ(read_back(on_.work, done.first[step_.of_b].get()), b);
    ASSERT_EQ(read_back(on_.work, done.first[step_.of_c].get()), c);
    for (int i = 0; i < 40; ++i) {
      a[static_cast<std::size_t>(i) % size] += 0.5F;
      a.back() = static_cast<float>(i);
      b.back() = static_cast<std::uint8_t>(i);
      c[0] = static_cast<float>(-i);
      const auto now = done.made->replay(
          on_.work, step_.what, {step_.a.from_host(a), step_.b.from_host(b), step_.c.from_host(c)});
      ASSERT_TRUE(now.has_value());
      if (i % 13 != 12) continue;
      ASSERT_EQ(read_back(on_.work, (*now)[step_.of_a].get()), a);
      ASSERT_EQ(read_back(on_.work, (*now)[step_.of_b].get()), b);
      ASSERT_EQ(read_back(on_.work, (*now)[step_.of_c].get()), c);
    }
  }
}

// What lies on the device is copied ahead of the launch, between inputs that are not.
TEST_P(input_ring_on, leaves_inputs_on_the_device_where_they_were_copied) {
  std::vector<float> a{1, 2, 3}, c{9, 8};
  const std::vector<std::uint8_t> b{1, 2, 3, 4, 5};
  buffer<std::uint8_t> device_b{on_.memory, b.size(), on_.work};
  buffer<float> device_a{on_.memory, a.size(), on_.work};
  upload(on_.work, b, device_b.all());
  recorded done = maker_.record(
      on_.work, step_.what, {step_.a.from_host(a), step_.b(device_b.all()), step_.c.from_host(c)});
  ASSERT_TRUE(done.made.has_value());
  EXPECT_EQ(read_back(on_.work, done.first[step_.of_a].get()), a);
  EXPECT_EQ(read_back(on_.work, done.first[step_.of_b].get()), b);
  EXPECT_EQ(read_back(on_.work, done.first[step_.of_c].get()), c);
  for (int i = 0; i < 10; ++i) {
    a[1] = static_cast<float>(i);
    upload(on_.work, a, device_a.all());
    const bool on_host = i % 2 == 0;
    const auto now = done.made->replay(on_.work, step_.what,
                                       {on_host ? step_.a.from_host(a) : step_.a(device_a.all()),
                                        step_.b(device_b.all()), step_.c.from_host(c)});
    ASSERT_TRUE(now.has_value());
    EXPECT_EQ(read_back(on_.work, (*now)[step_.of_a].get()), a);
    EXPECT_EQ(read_back(on_.work, (*now)[step_.of_b].get()), b);
    EXPECT_EQ(read_back(on_.work, (*now)[step_.of_c].get()), c);
  }
}

TEST_P(input_ring_on, is_not_made_for_inputs_that_are_all_on_the_device) {
  buffer<float> a{on_.memory, 3, on_.work};
  buffer<std::uint8_t> b{on_.memory, 5, on_.work};
  upload(on_.work, {1, 2, 3}, a.all());
  upload<std::uint8_t>(on_.work, {1, 2, 3, 4, 5}, b.all());
  recorded done =
      maker_.record(on_.work, step_.what, {step_.a(a.all()), step_.b(b.all()), step_.c(a.all())});
  ASSERT_TRUE(done.made.has_value());
  EXPECT_EQ(done.made->staging_slots(), 0U);
  EXPECT_EQ(done.made->nodes(), 3U);
  // Nor does it hinder a later call that binds one on the host.
  const std::vector<float> host{4, 5, 6};
  const auto now = done.made->replay(on_.work, step_.what,
                                     {step_.a.from_host(host), step_.b(b.all()), step_.c(a.all())});
  ASSERT_TRUE(now.has_value());
  EXPECT_EQ(read_back(on_.work, (*now)[step_.of_a].get()), host);
}

INSTANTIATE_TEST_SUITE_P(devices, input_ring_on, testing::ValuesIn(devices_under_test()),
                         [](const auto& of) { return test_name(of.param); });

}  // namespace
}  // namespace reprise::test
