// Captures and other threads: two capture at once, one helps beside a capture (D1, D2).
#include <array>
#include <atomic>
#include <exception>
#include <thread>

#include "reprise/device/graph.hpp"
#include "reprise/device/host_thread.hpp"
#include "scenarios/desk.hpp"
#include "scenarios/lists.hpp"

namespace reprise::scenarios {

namespace {

enum class capturing_threads_slip { none, one_number_for_both, unknown_thread };

// Each thread has a stream of its own and captures on it; they share a pool.
template <capturing_threads_slip made>
void two_threads_capture(device_ref dev) {
  desk at{dev};
  const number shared = at.made(at.s, 0);
  at.s.synchronize();
  std::array<std::int32_t, 2> got{};
  const auto work = [&](std::size_t me) {
    const stream own{dev};
    const number x = at.made(own, 0);
    const number& target = made == capturing_threads_slip::one_number_for_both ? shared : x;
    for (std::int32_t round = 1; round <= 3; ++round) {
      const executable step = capture(own, [&](stream_ref c) {
                                const number temporary{at.memory, 1, c};
                                fill(c, write{temporary}, round);
                                launch(c, add, read(temporary), inout(target));
                                append(c, target, static_cast<std::int32_t>(me));
                              }).instantiate(own);
      step.launch(own);
    }
    got[me] = value_of(own, target);
  };
  {
    host_thread first{dev, [&] { work(0); }};
    host_thread second{dev, [&] { work(1); }};
    first.join();
    second.join();
  }
  // ((10 (0 + 1) + me) + 2) 10 + me …
  require_equal(got[0], 1230, "what the first thread wrote");
  require_equal(got[1], 1341, "what the second thread wrote");
}

// A plain thread, which a device that owns time has never seen.
void ask_from_nowhere(const event& passed) {
  std::exception_ptr refused;
  std::thread{[&] {
    try {
      (void)passed.finished();
    } catch (...) {
      refused = std::current_exception();
    }
  }}.join();
  if (refused) std::rethrow_exception(refused);
}

// Beside a capture another thread pins memory, asks for events and works on a stream of its own.
template <capturing_threads_slip made>
void beside_a_capture(device_ref dev) {
  desk at{dev};
  const number x = at.made(at.s, 0);
  event before{dev};
  before.record(at.s);
  at.s.synchronize();
  std::atomic<bool> opened{false};
  std::int32_t helped = 0;
  const auto help = [&] {
    wait_until(dev, [&] { return opened.load(); });
    for (std::int32_t i = 1; i <= 3; ++i) {
      require(before.finished(), "an event of before the capture has not finished");
      const pinned<std::int32_t> host{dev, few};
      host[0] = i;
      const stream own{dev};
      pool memory{dev, "helper"};
      const number y{memory, 1, own};
      copy(own, read<std::int32_t>{host.all().subview(0, 1)}, write(y));
      helped += value_of(own, y);
    }
  };
  host_thread helper{dev, help};
  const at_exit let_it_go{[&] { opened = true; }};  // whatever fails here, it can be joined
  const executable step = capture(at.s, [&](stream_ref c) {
                            append(c, x, 1);
                            opened = true;
                            pause(dev);
                            append(c, x, 2);
                            if (made == capturing_threads_slip::unknown_thread)
                              ask_from_nowhere(before);
                            pause(dev);
                            append(c, x, 3);
                          }).instantiate(at.s);
  step.launch(at.s);
  helper.join();
  require_equal(value_of(at.s, x), 123, "what the capture recorded");
  require_equal(helped, 6, "what the helper did");
}

}  // namespace

std::vector<scenario> capturing_thread_scenarios() {
  return {
      {"two_threads_capture",
       "Two threads capture at once, out of one pool, each on its own stream.",
       two_threads_capture<capturing_threads_slip::none>,
       {"sim: another thread went on while one waited"},
       {{"one_number_for_both",
         "Two threads launch graphs that write the same buffer.",
         {"race"},
         two_threads_capture<capturing_threads_slip::one_number_for_both>}}},
      {"beside_a_capture",
       "Another thread pins memory, asks for events and works while a capture is open.",
       beside_a_capture<capturing_threads_slip::none>,
       {},
       {{"unknown_thread",
         "A std::thread calls the simulated device, which does not know it.",
         {"misuse", "thrown"},
         beside_a_capture<capturing_threads_slip::unknown_thread>}}},
  };
}

}  // namespace reprise::scenarios
