// The counting decorator: each call of the seam in its own kind, once.
#include "reprise/device/counting.hpp"

#include <set>

#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

// Everything that a counted call is made with.
struct bench {
  explicit bench(const std::string& spec)
      : opened{open_device(spec, {.threads = 1, .counts = counts}, kernel_registry{})},
        made{capture(work, [](stream_ref) {})},
        replayed{made.instantiate(work)} {}

  std::shared_ptr<call_counts> counts = std::make_shared<call_counts>();
  device opened;
  stream work{opened};
  pool memory{opened};
  buffer<int> x{memory, 4, work};
  buffer<int> y{memory, 4, work};
  event passed{opened};
  std::optional<pinned<int>> host{std::in_place, device_ref{opened}, 4U};
  graph made;
  executable replayed;
};

struct counted {
  seam_call kind;
  void (*make)(bench&);
};

const counted every_call[] = {
    {seam_call::copy, [](bench& b) { copy(b.work, read<int>{b.x}, write<int>{b.y}); }},
    {seam_call::fill, [](bench& b) { fill(b.work, write<int>{b.x}, 1); }},
    {seam_call::host_call, [](bench& b) { host_call(b.work, "host", {}, [] {}); }},
    {seam_call::external, [](bench& b) { external(b.work, "library", {}, [](void*) {}); }},
    {seam_call::event_record, [](bench& b) { b.passed.record(b.work); }},
    {seam_call::event_wait, [](bench& b) { b.passed.wait(b.work); }},
    {seam_call::allocate,
     [](bench& b) {
       b.x = {b.memory, 100000, b.work};
     }},
    {seam_call::release, [](bench& b) { b.host.reset(); }},
    {seam_call::create_stream, [](bench& b) { const stream made{b.opened}; }},
    {seam_call::create_event, [](bench& b) { const event made{b.opened}; }},
    {seam_call::synchronize, [](bench& b) { b.work.synchronize(); }},
    {seam_call::synchronize, [](bench& b) { b.passed.synchronize(); }},
    {seam_call::query, [](bench& b) { (void)b.passed.finished(); }},
    {seam_call::capture, [](bench& b) { capture(b.work, [](stream_ref) {}); }},
    {seam_call::instantiate, [](bench& b) { (void)b.made.instantiate(b.work); }},
    {seam_call::launch, [](bench& b) { b.replayed.launch(b.work); }},
};

class counting_on : public testing::TestWithParam<std::string> {};

TEST_P(counting_on, counts_each_call_once_and_in_its_own_kind_only) {
  bench with{GetParam()};
  for (const counted& call : every_call) {
    const calls_since now{*with.counts};
    call.make(with);
    with.work.synchronize();
    for (std::size_t i = 0; i < seam_calls; ++i) {
      const auto kind = static_cast<seam_call>(i);
      const std::uint64_t waited = kind == seam_call::synchronize ? 1 : 0;
      EXPECT_EQ(now[kind], (kind == call.kind ? 1U : 0U) + waited)
          << name_of(kind) << " while making a " << name_of(call.kind);
    }
  }
}

TEST_P(counting_on, counts_refused_calls_too) {
  bench with{GetParam()};
  const calls_since now{*with.counts};
  EXPECT_THROW(capture(with.work, [](stream_ref c) { c.synchronize(); }), capture_error);
  EXPECT_EQ(now[seam_call::synchronize], 1U);
  EXPECT_EQ(now[seam_call::capture], 1U);
}

INSTANTIATE_TEST_SUITE_P(devices, counting_on, each_device(), device_of);

TEST(call_counts, have_a_name_for_each_kind) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < seam_calls; ++i) names.insert(name_of(static_cast<seam_call>(i)));
  EXPECT_EQ(names.size(), seam_calls);
  EXPECT_FALSE(names.contains("?"));
}

// They are one to one, which the decorator relies on.
TEST(call_counts, begin_with_the_kinds_of_work) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < work_kinds; ++i) names.insert(name_of(static_cast<work_kind>(i)));
  EXPECT_EQ(names.size(), work_kinds);
  EXPECT_FALSE(names.contains("?"));
  EXPECT_EQ(static_cast<int>(work_kind::kernel), static_cast<int>(seam_call::kernel));
  EXPECT_EQ(static_cast<int>(work_kind::copy), static_cast<int>(seam_call::copy));
  EXPECT_EQ(static_cast<int>(work_kind::fill), static_cast<int>(seam_call::fill));
  EXPECT_EQ(static_cast<int>(work_kind::host_call), static_cast<int>(seam_call::host_call));
  EXPECT_EQ(static_cast<int>(work_kind::external), static_cast<int>(seam_call::external));
  EXPECT_EQ(static_cast<int>(work_kind::event_record), static_cast<int>(seam_call::event_record));
  EXPECT_EQ(static_cast<int>(work_kind::event_wait), static_cast<int>(seam_call::event_wait));
}

}  // namespace
}  // namespace reprise::test
