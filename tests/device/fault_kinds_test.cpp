// Faults by kind: the n-th call of one kind fails whatever else is called, has done nothing, and
// the next one succeeds. Walks over all calls are in faulty_test.cpp.
#include "reprise/device/faulty.hpp"
#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

// What the calls are made with; kernels aside, everything that can fail.
struct workplace {
  explicit workplace(const std::string& spec)
      : opened{faulty(counting(open_bare(spec), counts), plan)} {}

  std::shared_ptr<fault_plan> plan = std::make_shared<fault_plan>();
  std::shared_ptr<call_counts> counts = std::make_shared<call_counts>();
  device opened;
  stream work{opened};
  pool memory{opened};
  buffer<int> x = [&] {
    buffer<int> ones{memory, 4, work};
    fill(work, write<int>{ones}, 1);
    return ones;
  }();
  event passed{opened};
  node_id filled{};
  graph made = capture(work, [&](stream_ref c) { filled = fill(c, write<int>{x}, 2); });
  executable step = made.instantiate(work);
};

enum class error_of : std::uint8_t { device, memory, capture };

struct kind_of_call {
  seam_call kind;
  error_of thrown;
  void (*make)(workplace&);
};

const kind_of_call every_kind[] = {
    {seam_call::copy, error_of::device,
     [](workplace& w) { copy(w.work, read<int>{w.x}, write<int>{w.x}); }},
    {seam_call::fill, error_of::device, [](workplace& w) { fill(w.work, write<int>{w.x}, 3); }},
    {seam_call::host_call, error_of::device,
     [](workplace& w) { host_call(w.work, "host", {}, [] {}); }},
    {seam_call::empty, error_of::device, [](workplace& w) { empty(w.work, "empty"); }},
    {seam_call::external, error_of::device,
     [](workplace& w) { external(w.work, "library", {}, [](void*) {}); }},
    {seam_call::event_record, error_of::device, [](workplace& w) { w.passed.record(w.work); }},
    {seam_call::event_record, error_of::device,
     [](workplace& w) { w.passed.record_outside(stream_ref{w.work}.id()); }},
    {seam_call::event_wait, error_of::device, [](workplace& w) { w.passed.wait(w.work); }},
    {seam_call::allocate, error_of::memory,
     [](workplace& w) {
       const pinned<int> p{w.opened, 4};
     }},
    {seam_call::create_stream, error_of::device, [](workplace& w) { const stream s{w.opened}; }},
    {seam_call::create_event, error_of::device, [](workplace& w) { const event e{w.opened}; }},
    {seam_call::synchronize, error_of::device, [](workplace& w) { w.work.synchronize(); }},
    {seam_call::synchronize, error_of::device, [](workplace& w) { w.passed.synchronize(); }},
    {seam_call::query, error_of::device, [](workplace& w) { (void)w.passed.finished(); }},
    {seam_call::capture, error_of::capture,
     [](workplace& w) { capture(w.work, [](stream_ref) {}); }},
    {seam_call::clone, error_of::device, [](workplace& w) { (void)w.made.without({w.filled}); }},
    {seam_call::instantiate, error_of::device,
     [](workplace& w) { (void)w.made.instantiate(w.work); }},
    {seam_call::launch, error_of::device, [](workplace& w) { w.step.launch(w.work); }},
    {seam_call::enable, error_of::device, [](workplace& w) { w.step.enable(w.filled, true); }},
    {seam_call::set_parameters, error_of::device,
     [](workplace& w) { w.step.change_fill(w.filled, write<int>{w.x}, 4); }},
    {seam_call::update, error_of::device, [](workplace& w) { w.step.update(w.made); }},
};

class fault_of_a_kind : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { w.work.synchronize(); }

  static std::string message_of_call(workplace& w, const kind_of_call& call) {
    const auto make = [&] { call.make(w); };
    switch (call.thrown) {
      case error_of::memory: return message_of<out_of_memory>(make);
      case error_of::capture: return message_of<capture_error>(make);
      case error_of::device: break;
    }
    return message_of<device_error>(make);
  }

  workplace w{GetParam()};
};

TEST_P(fault_of_a_kind, strikes_that_kind_alone_once_and_the_call_has_done_nothing) {
  for (const kind_of_call& call : every_kind) {
    SCOPED_TRACE(name_of(call.kind));
    w.plan->fail_call(call.kind, 1);
    for (const kind_of_call& other : every_kind) {
      if (other.kind != call.kind) other.make(w);
    }
    EXPECT_FALSE(w.plan->fired());
    const calls_since now{*w.counts};
    const std::string message = message_of_call(w, call);
    EXPECT_TRUE(has(message, "injected fault")) << message;
    EXPECT_TRUE(w.plan->fired());
    EXPECT_EQ(now[call.kind], 0U) << "it got through";
    EXPECT_FALSE(stream_ref{w.work}.capturing());
    call.make(w);
    EXPECT_GE(now[call.kind], 1U) << "the next one succeeds";
    w.work.synchronize();
  }
}

TEST_P(fault_of_a_kind, counts_calls_of_that_kind_only) {
  w.plan->fail_call(seam_call::synchronize, 3);
  for (int i = 0; i < 5; ++i) fill(w.work, write<int>{w.x}, i);
  w.work.synchronize();
  w.passed.synchronize();
  for (int i = 0; i < 5; ++i) fill(w.work, write<int>{w.x}, i);
  EXPECT_FALSE(w.plan->fired());
  EXPECT_THROW(w.work.synchronize(), device_error);
  w.work.synchronize();
}

TEST_P(fault_of_a_kind, may_be_the_nth_allocation) {
  w.plan->fail_call(seam_call::allocate, 2);
  const pinned<int> first{w.opened, 4};
  EXPECT_THROW((pinned<int>{w.opened, 4}), out_of_memory);
  const pinned<int> third{w.opened, 4};
}

TEST_P(fault_of_a_kind, may_be_the_end_of_a_capture) {
  w.plan->fail_call(seam_call::capture, 2);
  const std::string message = message_of<capture_error>(
      [&] { capture(w.work, [&](stream_ref c) { fill(c, write<int>{w.x}, 9); }); });
  EXPECT_TRUE(message.starts_with("end_capture on")) << message;
  EXPECT_FALSE(stream_ref{w.work}.capturing());
  EXPECT_EQ(read_back(w.work, w.x), std::vector<int>(4, 1));
}

TEST_P(fault_of_a_kind, gives_way_to_the_one_that_is_asked_for_next) {
  w.plan->fail_call(seam_call::fill, 1);
  w.plan->fail_call(seam_call::query, 1);
  fill(w.work, write<int>{w.x}, 1);
  EXPECT_FALSE(w.plan->fired());
  w.plan->fail_call(0);
  EXPECT_TRUE(w.passed.finished());
  w.plan->fail_call(1);  // of any kind
  EXPECT_THROW(fill(w.work, write<int>{w.x}, 1), device_error);
  w.work.synchronize();
}

INSTANTIATE_TEST_SUITE_P(devices, fault_of_a_kind, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
