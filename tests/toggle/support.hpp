// What tests of sessions share: graphs whose works append their digit to a number, so that the
// number says what ran and in which order; and a plain device that a test makes fail.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reprise/device/faulty.hpp"
#include "reprise/device/forwarding.hpp"
#include "reprise/device/gate.hpp"
#include "reprise/ops/switch_nodes.hpp"
#include "reprise/toggle/session.hpp"
#include "tests/conformance/conformance.hpp"

namespace reprise::test {

using digits = buffer<std::int32_t>;

inline switch_key key(std::size_t of) {
  return switch_key{of};
}

// Keys of works, by their numbers from 0 on.
inline switch_set works(std::initializer_list<std::size_t> on) {
  std::vector<switch_key> keys;
  for (const std::size_t one : on) keys.push_back(key(one));
  return switch_set{std::move(keys)};
}
inline switch_set all_but(std::size_t count, std::initializer_list<std::size_t> off) {
  const switch_set left_out = works(off);
  std::vector<switch_key> keys;
  for (std::size_t i = 0; i < count; ++i) {
    if (!left_out.contains(key(i))) keys.push_back(key(i));
  }
  return switch_set{std::move(keys)};
}

// Work i appends the digit i + 1, so nine at most; or, where there are more elements, it fills its
// own with 1.
struct recorded {
  graph made;
  std::vector<node_id> nodes;
};

inline node_id append(stream_ref s, const digits& x, std::size_t work) {
  return launch(s, append_digit, inout(x), static_cast<std::int32_t>(work + 1));
}

inline recorded record(toggle_session& session, stream_ref s, const digits& x, std::size_t count) {
  std::vector<node_id> nodes;
  graph made = capture(s, [&](stream_ref c) {
    capture_window window = session.open_window(c);
    for (std::size_t i = 0; i < count; ++i) {
      nodes.push_back(x.size() == 1 ? append(c, x, i)
                                    : fill(c, write<std::int32_t>{x.all().subview(i, 1)}, 1));
      window.note(key(i), nodes.back());
    }
  });
  return {std::move(made), std::move(nodes)};
}

// With a planner ahead of them, all driven.
inline fixed_executable record_driven(toggle_session& session, stream_ref s, const digits& x,
                                      std::size_t count, std::size_t words) {
  std::vector<node_id> nodes;
  graph made = capture(s, [&](stream_ref c) {
    capture_window window = session.open_window(c);
    const planner_views planner = window.words_for_planner(words);
    launch(c, switch_nodes, read<std::uint64_t>{planner.handles}, read<std::uint8_t>{planner.on});
    for (std::size_t i = 0; i < count; ++i) {
      nodes.push_back(append(c, x, i));
      window.note(key(i), nodes.back());
    }
  });
  return std::move(made).instantiate_device_driven(s, nodes);
}

// What one launch leaves in the number, from 0.
template <class Executable>
std::int32_t digits_of(stream_ref s, const Executable& step, const digits& x) {
  fill(s, write<std::int32_t>{x}, 0);
  step.launch(s);
  return read_back(s, x).front();
}

// What they should be.
inline std::int32_t digits_in(std::size_t count, const switch_set& on) {
  std::int32_t made = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (on.contains(key(i))) made = 10 * made + static_cast<std::int32_t>(i + 1);
  }
  return made;
}

class toggle_suite : public conformance {};

// Switches nothing while it is told so.
class unswitchable final : public forwarding_device {
 public:
  unswitchable(std::unique_ptr<device_api> inner, std::shared_ptr<bool> is_now)
      : forwarding_device{std::move(inner)}, is_now_{std::move(is_now)} {}
  void enable(executable_id executable, node_id node, bool on, place from) override {
    if (*is_now_) throw device_error{{"enable", traits().name, from}, "the test says so"};
    inner().enable(executable, node, on, from);
  }

 private:
  std::shared_ptr<bool> is_now_;
};

// A device whose calls are counted and made to fail.
struct failing_device {
  explicit failing_device(const std::string& spec)
      : opened{open(spec)}, s{opened}, memory{opened, "test"} {}

  digits made() {
    digits x{memory, 1, s};
    fill(s, write<std::int32_t>{x}, 0);
    return x;
  }

  std::shared_ptr<call_counts> counts = std::make_shared<call_counts>();
  std::shared_ptr<fault_plan> plan = std::make_shared<fault_plan>();
  std::shared_ptr<bool> switches_nothing = std::make_shared<bool>(false);
  device opened;
  stream s;
  pool memory;

 private:
  device open(const std::string& spec) {
    auto implementation = counting(
        std::make_unique<unswitchable>(faulty(open_bare(spec), plan), switches_nothing), counts);
    auto table = resolve_kernels(conformance_kernels(), implementation->traits());
    return device{std::move(implementation), std::move(table)};
  }
};

}  // namespace reprise::test
