// Rule 22: after a sticky fault every call says plainly that the device is lost. In a child
// process, since nothing brings a device back; the gate also gives this suite a process of its own.
#include <cstdio>
#include <cstdlib>

#include "tests/conformance/conformance.hpp"

namespace reprise::test {
namespace {

using place = std::source_location;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::_Exit(2);
}

template <class Call>
void require_says_lost(const char* name, Call&& call) {
  try {
    call();
  } catch (const device_error& failure) {
    const std::string text = failure.what();
    require(text.find("is lost for this process") != std::string::npos, text.c_str());
    require(text.find("cudaErrorIllegalAddress") != std::string::npos, text.c_str());
    return;
  }
  require(false, name);
}

[[noreturn]] void lose_a_device(const std::string& spec) {
  const place here = place::current();
  {
    const device lost = open_device(spec, {}, conformance_kernels());
    device_api& api = device_ref{lost}.api();
    const stream s{lost};
    event e{lost};
    pool memory{lost};
    const buffer<std::int32_t> x{memory, 10, s};
    const pinned<std::int32_t> host{lost, 10};
    node_id filled{};
    const graph made =
        capture(s, [&](stream_ref c) { filled = fill(c, write<std::int32_t>{x}, 1); });
    const graph other = capture(s, [&](stream_ref c) { fill(c, write<std::int32_t>{x}, 2); });
    executable step = made.instantiate(s);
    e.record(s);
    require_says_lost("the fault", [&] {  // at the launch already, if the card is quick
      launch(s, stray, 1);
      s.synchronize();
    });

    require_says_lost("synchronize", [&] { s.synchronize(); });
    require_says_lost("allocate", [&] { api.allocate(memory_kind::device, 1, here); });
    require_says_lost("memory", [&] { api.memory(here); });
    require_says_lost("create_stream", [&] { stream another{lost}; });
    require_says_lost("create_event", [&] { event another{lost}; });
    require_says_lost("finished", [&] { (void)e.finished(); });
    require_says_lost("event", [&] { e.record(s); });
    require_says_lost("fill", [&] { fill(s, write<std::int32_t>{x}, 1); });
    require_says_lost("copy", [&] { copy(s, read<std::int32_t>{x}, write<std::int32_t>{host}); });
    require_says_lost("host_call", [&] { host_call(s, "never", {}, [] {}); });
    require_says_lost("launch", [&] { step.launch(s); });
    require_says_lost("capture", [&] { capture(s, [](stream_ref) {}); });
    require_says_lost("instantiate", [&] { (void)made.instantiate(s); });
    require_says_lost("enable", [&] { step.enable(filled, false); });
    require_says_lost("change", [&] { step.change_fill(filled, write<std::int32_t>{x}, 3); });
    require_says_lost("update", [&] { step.update(other); });
    require_says_lost("without", [&] { (void)made.without(std::vector{filled}); });
    require(!api.capturing(stream_ref{s}.id()), "no capture is left open");
  }  // destructors do not throw and do not repeat the fault line by line
  std::fprintf(stderr, "every call says so\n");
  std::exit(0);
}

class rule_22_lost_device : public conformance {};

TEST_P(rule_22_lost_device, says_so_at_every_later_call) {
  if (!on_cuda()) GTEST_SKIP() << "a simulated device has no faults that outlive a call";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(lose_a_device(GetParam()), testing::ExitedWithCode(0), "every call says so");
}

INSTANTIATE_TEST_SUITE_P(, rule_22_lost_device, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
