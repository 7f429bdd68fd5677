// Rule 22, calls in any order: each succeeds or is refused with a typed error, and nothing is left.
#include <optional>
#include <random>
#include <utility>

#include "tests/conformance/conformance.hpp"

namespace reprise::test {
namespace {

// One sequence of calls on a stream, two graphs and two executables, by the seam's own ids. A
// handle that was destroyed is `none` from then on, as in an owner that was moved from.
class any_calls {
 public:
  any_calls(device_api& api, stream_ref on, const buffer<std::int32_t>& x)
      : api_{api}, on_{on}, x_{x} {}
  ~any_calls() {
    api_.abandon_capture(on_.id());
    for (const executable_id e : {step_, other_step_}) api_.destroy(e);
    for (const graph_id g : {made_, other_made_}) api_.destroy(g);
  }
  any_calls(const any_calls&) = delete;
  any_calls& operator=(const any_calls&) = delete;

  // True: it was done. False: it was refused.
  bool call(unsigned which) {
    try {
      make(which);
      return true;
    } catch (const error&) {
      return false;
    }
  }

 private:
  void make(unsigned which) {
    const auto here = std::source_location::current();
    switch (which) {
      case 0: return api_.begin_capture(on_.id(), here);
      case 1: {
        const graph_id fresh = api_.end_capture(on_.id(), here);
        api_.destroy(std::exchange(made_, fresh));
        return;
      }
      case 2: {
        const executable_id fresh = api_.instantiate(made_, on_.id(), here);
        api_.destroy(std::exchange(step_, fresh));
        return;
      }
      case 3: return api_.launch(step_, on_.id(), here);
      case 4: (void)api_.update(step_, made_, here); return;
      case 5: return api_.destroy(std::exchange(step_, executable_id::none));
      case 6: return api_.destroy(std::exchange(made_, graph_id::none));
      case 7:
        std::swap(made_, other_made_);
        std::swap(step_, other_step_);
        return;
      default: fill(on_, write<std::int32_t>{x_}, 1);
    }
  }

  device_api& api_;
  stream_ref on_;
  const buffer<std::int32_t>& x_;
  graph_id made_ = graph_id::none, other_made_ = graph_id::none;
  executable_id step_ = executable_id::none, other_step_ = executable_id::none;
};

TEST_P(rule_22, D19_calls_in_any_order_succeed_or_are_refused) {
  const int sequences = runs_later() ? 2000 : sanitized ? 5000 : 100000;
  const auto x = number(16);
  s().synchronize();
  const std::size_t held = leased();
  std::mt19937 random{19};
  std::uniform_int_distribution<unsigned> any{0, 8};
  int done = 0;
  int refused = 0;
  for (int i = 0; i < sequences; ++i) {
    any_calls sequence{api(), s(), x};
    for (int c = 0; c < 12; ++c) ++(sequence.call(any(random)) ? done : refused);
  }
  EXPECT_GT(done, sequences);
  EXPECT_GT(refused, sequences);
  s().synchronize();
  api().settle();
  EXPECT_EQ(leased(), held);
  expect_clean(s());
}

}  // namespace
}  // namespace reprise::test
