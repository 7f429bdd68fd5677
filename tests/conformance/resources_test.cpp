// Rule 16, beyond Reprise's own objects: a resource of somebody else's goes after the launches that
// use it.
#include <optional>

#include "reprise/device/external_resource.hpp"
#include "tests/conformance/conformance.hpp"

namespace reprise::test {
namespace {

using std::chrono::milliseconds;

// An executable that appends a digit and uses the resource.
std::optional<executable> recorded_with(external_resource& used, stream_ref on, std::string name,
                                        const buffer<std::int32_t>& x, std::int32_t digit,
                                        std::function<void()> let_go) {
  const graph made = capture(on, [&](stream_ref c) {
    launch(c, append_digit, inout(x), digit);
    used.used_by(c, std::move(name), std::move(let_go));
  });
  return made.instantiate(on);
}

TEST_P(rule_16, D18_a_resource_is_released_behind_the_launches_of_all_who_use_it) {
  std::vector<std::string> log;
  const auto x = number();
  external_resource comm{dev(), "communicator", [&] { log.emplace_back("released"); }};
  std::optional<executable> first;
  std::optional<executable> second;
  first = recorded_with(comm, s(), "prefill", x, 1, [&] {
    log.emplace_back("prefill let go");
    first.reset();
  });
  second = recorded_with(comm, s(), "decode", x, 2, [&] {
    log.emplace_back("decode let go");
    second.reset();
  });
  EXPECT_EQ(comm.users(), 2U);
  {
    held_stream held{s()};
    first->launch(s());
    second->launch(s());
    if (runs_later()) {
      const std::string message = message_of<usage_error>([&] { comm.release(milliseconds{50}); });
      EXPECT_TRUE(has(message, "'communicator'")) << message;
      EXPECT_TRUE(has(message, "'prefill', 'decode'")) << message;
      EXPECT_TRUE(has(message, "50 ms")) << message;
      EXPECT_EQ(log, (std::vector<std::string>{"prefill let go", "decode let go"}));
    }
    EXPECT_STILL_HELD(held);
  }
  comm.release(milliseconds{10'000});
  EXPECT_EQ(log, (std::vector<std::string>{"prefill let go", "decode let go", "released"}));
  EXPECT_EQ(value_of(s(), x), 12);
  comm.release(milliseconds{0});
  EXPECT_EQ(log.size(), 3U) << "released twice";
}

TEST_P(rule_16, D18_a_resource_without_users_is_released_at_once_and_by_its_destructor) {
  int released = 0;
  {
    const external_resource unused{dev(), "handle", [&] { ++released; }};
    EXPECT_EQ(unused.users(), 0U);
  }
  EXPECT_EQ(released, 1);
}

TEST_P(rule_16, D18_a_resource_is_used_by_recorded_work_only) {
  external_resource comm{dev(), "communicator", [] {}};
  const std::string message =
      message_of<usage_error>([&] { comm.used_by(s(), "eager step", [] {}); });
  EXPECT_TRUE(has(message, "'communicator'")) << message;
  EXPECT_TRUE(has(message, "'eager step'")) << message;
}

}  // namespace
}  // namespace reprise::test
