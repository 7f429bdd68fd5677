// The launch gate: asked before each launch of an executable, and of nothing else.
#include "reprise/device/gate.hpp"

#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

class launch_gate_on : public on_each_device {
 protected:
  ~launch_gate_on() override { dev().set_gate(nullptr); }
};

// Counts how often it was asked; refuses, or puts another executable in the place.
class scripted_gate : public launch_gate {
 public:
  verdict before(executable_id& may_swap, stream_ref stream) override {
    ++asked;
    last_stream = stream.id();
    if (instead != executable_id::none) may_swap = instead;
    return answer;
  }

  int asked = 0;
  stream_id last_stream = stream_id::none;
  executable_id instead = executable_id::none;
  verdict answer = verdict::launch;
};

TEST_P(launch_gate_on, is_asked_before_each_launch_and_not_for_eager_work) {
  const auto x = filled<int>(8, 0);
  const executable made =
      capture(s(), [&](stream_ref c) { fill(c, write<int>{x}, 1); }).instantiate(s());
  scripted_gate gate;
  EXPECT_EQ(dev().set_gate(&gate), nullptr);
  fill(s(), write<int>{x}, 7);
  EXPECT_EQ(gate.asked, 0);
  made.launch(s());
  made.launch(s());
  EXPECT_EQ(gate.asked, 2);
  EXPECT_EQ(gate.last_stream, s().id());
  EXPECT_EQ(dev().set_gate(nullptr), &gate);
  made.launch(s());
  EXPECT_EQ(gate.asked, 2);
}

TEST_P(launch_gate_on, that_refuses_leaves_nothing_enqueued) {
  const auto x = filled<int>(8, 5);
  const executable made =
      capture(s(), [&](stream_ref c) { fill(c, write<int>{x}, 1); }).instantiate(s());
  scripted_gate gate;
  gate.answer = verdict::refuse;
  dev().set_gate(&gate);
  const calls_since now{*counts};
  const std::string message = message_of<usage_error>([&] { made.launch(s()); });
  EXPECT_TRUE(has(message, "launch gate")) << message;
  EXPECT_EQ(now[seam_call::launch], 0U);
  EXPECT_EQ(read_back(s(), x), std::vector<int>(8, 5));
}

TEST_P(launch_gate_on, may_put_a_twin_in_the_place) {
  const auto x = filled<int>(8, 0);
  const executable one =
      capture(s(), [&](stream_ref c) { fill(c, write<int>{x}, 1); }).instantiate(s());
  const executable two =
      capture(s(), [&](stream_ref c) { fill(c, write<int>{x}, 2); }).instantiate(s());
  scripted_gate gate;
  gate.instead = two.id();
  dev().set_gate(&gate);
  one.launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(8, 2));
}

// As a toggle session does: its nodes are brought up to date for this very launch.
class updating_gate : public launch_gate {
 public:
  updating_gate(executable& step, node_id node, write<int> to)
      : step_{step}, node_{node}, to_{to} {}
  verdict before(executable_id&, stream_ref) override {
    step_.change_fill(node_, to_, next++);
    return verdict::launch;
  }
  int next = 5;

 private:
  executable& step_;
  node_id node_;
  write<int> to_;
};

TEST_P(launch_gate_on, may_change_nodes_for_the_launch_that_it_is_asked_about) {
  const auto x = filled<int>(8, 0);
  node_id filling{};
  executable made =
      capture(s(), [&](stream_ref c) { filling = fill(c, write<int>{x}, 1); }).instantiate(s());
  updating_gate gate{made, filling, write<int>{x}};
  dev().set_gate(&gate);
  for (const int value : {5, 6, 7}) {
    made.launch(s());
    EXPECT_EQ(read_back(s(), x), std::vector<int>(8, value));
  }
}

TEST_P(launch_gate_on, is_not_asked_about_captures_and_instantiations) {
  const auto x = filled<int>(8, 0);
  scripted_gate gate;
  gate.answer = verdict::refuse;
  dev().set_gate(&gate);
  const executable made =
      capture(s(), [&](stream_ref c) { fill(c, write<int>{x}, 1); }).instantiate(s());
  EXPECT_EQ(gate.asked, 0);
}

INSTANTIATE_TEST_SUITE_P(devices, launch_gate_on, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
