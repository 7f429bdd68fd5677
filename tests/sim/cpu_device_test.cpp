// The in-order device by its seam alone: handles that are dead are found, and work runs at once.
#include <algorithm>

#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

using place = std::source_location;

class cpu_device : public testing::Test {
 protected:
  work host_work(const std::function<void()>& run) const {
    work what;
    what.kind = work_kind::host_call;
    what.label = "host";
    what.place = place::current();
    what.on_host = &run;
    return what;
  }
  work event_work(work_kind kind, event_id event) const {
    work what;
    what.kind = kind;
    what.place = place::current();
    what.event = event;
    return what;
  }
  void expect_dead(std::string_view call, std::string_view thing, const std::string& message) {
    EXPECT_TRUE(
        message.starts_with(std::string{call} + " on cpu failed: the " + std::string{thing}))
        << message;
    EXPECT_TRUE(has(message, "destroyed")) << message;
  }

  const std::unique_ptr<device_api> api = sim::open_cpu(1);
  const place here = place::current();
  const stream_id work_on = api->create_stream(stream_priority::usual, here);
};

TEST_F(cpu_device, runs_work_before_the_call_returns) {
  int ran = 0;
  const std::function<void()> run = [&] { ++ran; };
  api->submit(work_on, host_work(run));
  EXPECT_EQ(ran, 1);
}

TEST_F(cpu_device, gives_aligned_memory_of_any_size) {
  for (const memory_kind kind : {memory_kind::device, memory_kind::pinned}) {
    for (const std::size_t bytes : {0U, 1U, 255U, 256U, 257U, 100000U}) {
      std::byte* const begin = api->allocate(kind, bytes, here);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(begin) % 256, 0U);
      std::fill_n(begin, bytes, std::byte{1});
      api->release(kind, begin);
    }
  }
}

TEST_F(cpu_device, has_not_more_memory_than_can_be_addressed) {
  const std::string message = message_of<out_of_memory>(
      [&] { api->allocate(memory_kind::device, std::numeric_limits<std::size_t>::max(), here); });
  expect_names(message, "allocate", "cpu", "cpu_device_test.cpp");
}

TEST_F(cpu_device, never_gives_a_handle_twice) {
  std::vector<std::uint64_t> handles;
  for (int i = 0; i < 10; ++i) {
    const stream_id stream = api->create_stream(stream_priority::usual, here);
    const event_id event = api->create_event(here);
    handles.push_back(static_cast<std::uint64_t>(stream));
    handles.push_back(static_cast<std::uint64_t>(event));
    api->destroy(stream);
    api->destroy(event);
  }
  std::ranges::sort(handles);
  EXPECT_EQ(std::ranges::adjacent_find(handles), handles.end());
  EXPECT_GT(handles.front(), 0U);
}

TEST_F(cpu_device, finds_a_dead_stream) {
  const stream_id dead = api->create_stream(stream_priority::usual, here);
  api->destroy(dead);
  const std::function<void()> run = [] {};
  expect_dead("host call", "stream",
              message_of<device_error>([&] { api->submit(dead, host_work(run)); }));
  expect_dead("synchronize", "stream",
              message_of<device_error>([&] { api->synchronize(dead, here); }));
  expect_dead("begin_capture", "stream",
              message_of<device_error>([&] { api->begin_capture(dead, here); }));
  EXPECT_FALSE(api->capturing(dead));
  api->abandon_capture(dead);
  api->destroy(dead);
}

TEST_F(cpu_device, finds_a_dead_event) {
  const event_id dead = api->create_event(here);
  api->destroy(dead);
  expect_dead("event record", "event", message_of<device_error>([&] {
                api->submit(work_on, event_work(work_kind::event_record, dead));
              }));
  expect_dead("event wait", "event", message_of<device_error>([&] {
                api->submit(work_on, event_work(work_kind::event_wait, dead));
              }));
  expect_dead("finished", "event", message_of<device_error>([&] { api->finished(dead, here); }));
  expect_dead("synchronize event", "event",
              message_of<device_error>([&] { api->synchronize(dead, here); }));
}

TEST_F(cpu_device, finds_a_dead_graph_and_a_dead_executable) {
  api->begin_capture(work_on, here);
  const graph_id graph = api->end_capture(work_on, here);
  const executable_id replayed = api->instantiate(graph, work_on, here);
  api->destroy(graph);
  api->launch(replayed, work_on, here);
  api->destroy(replayed);
  expect_dead("nodes", "graph", message_of<device_error>([&] { (void)api->nodes(graph, here); }));
  expect_dead("instantiate", "graph",
              message_of<device_error>([&] { api->instantiate(graph, work_on, here); }));
  expect_dead("launch", "executable",
              message_of<device_error>([&] { api->launch(replayed, work_on, here); }));
}

TEST_F(cpu_device, ends_only_a_capture_that_was_begun) {
  const std::string message = message_of<capture_error>([&] { api->end_capture(work_on, here); });
  EXPECT_TRUE(has(message, "no capture was begun on this stream")) << message;
  api->abandon_capture(work_on);
  EXPECT_FALSE(api->capturing(work_on));
}

TEST_F(cpu_device, forgets_the_capture_of_a_stream_that_is_destroyed) {
  const stream_id dying = api->create_stream(stream_priority::usual, here);
  api->begin_capture(dying, here);
  const event_id forked = api->create_event(here);
  api->submit(dying, event_work(work_kind::event_record, forked));
  api->submit(work_on, event_work(work_kind::event_wait, forked));
  EXPECT_TRUE(api->capturing(work_on));
  api->destroy(dying);
  EXPECT_FALSE(api->capturing(work_on));
  int ran = 0;
  const std::function<void()> run = [&] { ++ran; };
  api->submit(work_on, host_work(run));
  EXPECT_EQ(ran, 1);
}

TEST_F(cpu_device, gets_no_further_in_a_capture_that_was_spoiled) {
  api->begin_capture(work_on, here);
  EXPECT_THROW(api->synchronize(work_on, here), capture_error);
  const std::function<void()> run = [] {};
  const std::string later =
      message_of<capture_error>([&] { api->submit(work_on, host_work(run)); });
  EXPECT_TRUE(has(later, "the capture was made invalid by: synchronize on cpu")) << later;
  const std::string end = message_of<capture_error>([&] { api->end_capture(work_on, here); });
  EXPECT_TRUE(has(end, "the capture was made invalid by: synchronize on cpu")) << end;
}

TEST_F(cpu_device, calls_external_work_again_at_each_launch) {
  int calls = 0;
  {
    const std::function<void(void*)> run = [&](void* native) {
      EXPECT_EQ(native, nullptr);
      ++calls;
    };
    work what;
    what.kind = work_kind::external;
    what.place = here;
    what.on_stream = &run;
    api->begin_capture(work_on, here);
    api->submit(work_on, what);
  }
  const graph_id graph = api->end_capture(work_on, here);
  const executable_id replayed = api->instantiate(graph, work_on, here);
  EXPECT_EQ(calls, 0);
  for (int i = 1; i <= 3; ++i) {
    api->launch(replayed, work_on, here);
    EXPECT_EQ(calls, i);
  }
  api->destroy(replayed);
  api->destroy(graph);
}

}  // namespace
}  // namespace reprise::test
