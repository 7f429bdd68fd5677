// What most scenarios stand on: a device with a stream and a pool, and the few words that make
// their code short. For this folder's .cpp files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/device/enqueue.hpp"
#include "reprise/device/memory.hpp"
#include "reprise/kernel/launch.hpp"
#include "scenarios/kernels.hpp"
#include "scenarios/scenario.hpp"

namespace reprise::scenarios {

using number = buffer<std::int32_t>;
using numbers = std::vector<std::int32_t>;

// A few elements: enough for an access that is partly right, too few to cost anything.
inline constexpr std::size_t few = 8;

struct desk {
  explicit desk(device_ref of) : dev{of}, s{of}, memory{of, "scenario"} {}

  // Elements of one value, in the order of the stream.
  number made(stream_ref on, std::int32_t value, std::size_t count = 1) {
    number x{memory, count, on};
    fill(on, write{x}, value);
    return x;
  }

  device_ref dev;
  stream s;
  pool memory;
};

// Does something when a scope ends, in whatever way.
template <class Act>
class at_exit {
 public:
  explicit at_exit(Act act) : act_{std::move(act)} {}
  ~at_exit() { act_(); }
  at_exit(const at_exit&) = delete;
  at_exit& operator=(const at_exit&) = delete;

 private:
  Act act_;
};

// What is enqueued on `after` from now on comes after the work of `before`.
inline void order(stream_ref before, stream_ref after) {
  event passed{before.device()};
  passed.record(before);
  passed.wait(after);
}

inline node_id append(site at, const number& to, std::int32_t digit) {
  return launch(at, append_digit, inout(to), digit);
}

inline read<std::int32_t> read_of(const numbers& host) {
  return read<std::int32_t>{view<const std::int32_t>{host.data(), host.size()}};
}

// The host waits for them.
numbers values_of(stream_ref after, view<const std::int32_t> x);
inline std::int32_t value_of(stream_ref after, const number& x) {
  return values_of(after, x.all().subview(0, 1)).front();
}

// Throws wrong_result with both values.
void require_equal(std::int64_t actual, std::int64_t expected, std::string_view what,
                   std::source_location from = std::source_location::current());
void require_equal(const numbers& actual, const numbers& expected, std::string_view what,
                   std::source_location from = std::source_location::current());

}  // namespace reprise::scenarios
