// THE HARNESS of the conformance suite: each device under test with the kernels of the suite, and
// streams that are held, so that the rules about work in flight meet work in flight.
//
// A case is `TEST_P(rule_NN, says_what_holds)`, in any file of this folder; suite_test.cpp makes
// the suites of all rules for each device. A case that is one of the field's begins with its number
// (`D12_…`). A device that runs its work at once (`runs_later()` is false) cannot be held: such
// cases assert what remains.
#pragma once

#include <atomic>
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>

#include "reprise/kernel/launch.hpp"
#include "tests/conformance/bodies.hpp"
#include "tests/conformance/kernels.hpp"
#include "tests/device/support.hpp"
#include "tests/support/order.hpp"
#include "tests/support/sanitized.hpp"

namespace reprise::test {

class conformance : public on_each_device {
 protected:
  conformance() : on_each_device{conformance_kernels()} {}

  device_api& api() const { return dev().api(); }

  // Whether work may run after the call that enqueued it has returned.
  bool runs_later() const { return GetParam() != "cpu"; }
  bool on_cuda() const { return dev().bodies() == device_kind::cuda; }
  // CUDA's, of this thread: 0 where nothing is left of an error.
  int error_slot() const { return on_cuda() ? native_error_slot() : 0; }

  // A number that `append` writes digits to: 0 at first, and the order of the works can be read.
  buffer<std::int32_t> number(std::size_t count = 1) { return filled<std::int32_t>(count, 0); }
  static node_id append(site at, const buffer<std::int32_t>& to, std::int32_t digit) {
    return launch(at, append_digit, inout(to), digit);
  }
  static std::int32_t value_of(stream_ref after, const buffer<std::int32_t>& x) {
    return read_back(after, x).front();
  }

  // Nothing is left of a failure: the stream takes work and a capture, and CUDA's error slot of
  // this thread is clean.
  void expect_clean(stream_ref on) {
    EXPECT_EQ(error_slot(), 0);
    expect_usable(on);
  }

  // `call` inside a capture is refused by name, at the caller's line. A body that swallows the
  // refusal gets no further, and no graph that means something else. The stream goes on after it.
  template <class Call>
  void expect_refused(std::string_view name, Call&& call,
                      std::source_location from = std::source_location::current()) {
    SCOPED_TRACE(name);
    const std::string_view path = from.file_name();
    const auto x = number();
    expect_names(message_of<capture_error>([&] { capture(s(), call); }), name, GetParam(),
                 path.substr(path.rfind('/') + 1));
    expect_clean(s());

    std::string later;
    const std::string at_the_end = message_of<capture_error>([&] {
      capture(s(), [&](stream_ref c) {
        append(c, x, 1);
        EXPECT_THROW(call(c), capture_error);
        later = message_of<capture_error>([&] { append(c, x, 2); });
      });
    });
    EXPECT_TRUE(has(later, name)) << "the cause is not named: " << later;
    EXPECT_TRUE(has(at_the_end, "end_capture on " + GetParam())) << at_the_end;
    EXPECT_TRUE(has(at_the_end, name)) << "the cause is not named: " << at_the_end;
    expect_clean(s());
    EXPECT_EQ(value_of(s(), x), 0) << "something ran";
  }
};

// Keeps a stream from going on until it is released or dies: a card by a kernel that spins, 20
// seconds at most, a simulated one by its controls. What came before has run. What a test uses
// meanwhile is made before: a card may wait for all its work before it allocates or loads a kernel.
class held_stream {
 public:
  explicit held_stream(stream_ref stream)
      : simulation_{sim::controls_of(stream.device())},
        word_{stream.device(), 2},
        stream_{stream},
        passed_{stream.device()} {
    word_[0] = 0;
    word_[1] = 0;
    if (simulation_ != nullptr) {
      stream.synchronize();
      simulation_->hold(stream.id());
    } else {
      load_what_tests_use();
      launch(stream, hold, read(word_));
    }
    passed_.record(stream);
  }
  // The stream may have gone before.
  ~held_stream() {
    release();
    passed_.synchronize();
  }
  held_stream(const held_stream&) = delete;
  held_stream& operator=(const held_stream&) = delete;

  bool holds() const { return !passed_.finished(); }
  // From any thread, and again.
  void release() {
    if (simulation_ == nullptr) {
      std::atomic_ref{word_[0]}.store(1);
    } else if (!released_.exchange(true)) {
      simulation_->release(stream_.id());
    }
  }

 private:
  // A kernel is loaded and a stream's staging memory is made at their first use.
  void load_what_tests_use() {
    std::int32_t pageable = 0;
    launch(stream_, append_digit, inout<std::int32_t>{word_.all().subview(1, 1)}, 0);
    copy(stream_, read<std::int32_t>{view<std::int32_t>{&pageable, 1}},
         write<std::int32_t>{word_.all().subview(1, 1)});
    stream_.synchronize();
  }

  sim::controls* simulation_;  // null: not simulated
  std::atomic<bool> released_{false};
  pinned<std::int32_t> word_;
  stream_ref stream_;
  event passed_;
};

// For cases on devices that run later: the stream was held all the time, so no call waited for it.
#define EXPECT_STILL_HELD(held) \
  EXPECT_EQ((held).holds(), runs_later()) << "a call waited for the work in flight"

class rule_01 : public conformance {};
class rule_02 : public conformance {};
class rule_03 : public conformance {};
class rule_04 : public conformance {};
class rule_05 : public conformance {};
class rule_06 : public conformance {};
class rule_07 : public conformance {};
class rule_08 : public conformance {};
class rule_09 : public conformance {};
class rule_10 : public conformance {};
class rule_11 : public conformance {};
class rule_12 : public conformance {};
class rule_13 : public conformance {};
class rule_14 : public conformance {};
class rule_15 : public conformance {};
class rule_16 : public conformance {};
class rule_17 : public conformance {};
class rule_18 : public conformance {};
class rule_19 : public conformance {};
class rule_20 : public conformance {};
class rule_21 : public conformance {};
class rule_22 : public conformance {};
class rule_23 : public conformance {};

}  // namespace reprise::test
