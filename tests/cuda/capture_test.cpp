// Captures on a card: what is refused and named, how they end, and who is left alone meanwhile.
#include <functional>

#include "gpu.hpp"

namespace reprise::test {
namespace {

using place = std::source_location;

// What the refused calls are made with; all of it was made before the capture.
struct surroundings {
  device_api& api;
  stream_ref captured;
  stream_ref other;
  executable_id step;
  graph_id nothing;
  event& outside;    // recorded on `other`
  event& never;      // not recorded
  event& inside;     // recorded in the capture
  event& ended;      // recorded in an earlier capture
  view<float> data;  // one element on the device
  view<float> pageable;
};

struct refused_call {
  const char* name;  // of the test
  const char* call;  // in the message
  void (*make)(surroundings&);
};

class a_call_in_a_capture : public on_a_gpu, public testing::WithParamInterface<refused_call> {};

constexpr refused_call refused_calls[] = {
    {"synchronize", "synchronize on", [](surroundings& w) { w.captured.synchronize(); }},
    {"synchronize_event", "synchronize event", [](surroundings& w) { w.inside.synchronize(); }},
    {"query_event", "finished", [](surroundings& w) { (void)w.inside.finished(); }},
    {"begin_capture", "begin_capture",
     [](surroundings& w) { w.api.begin_capture(w.captured.id(), place::current()); }},
    {"launch", "launch",
     [](surroundings& w) { w.api.launch(w.step, w.captured.id(), place::current()); }},
    {"instantiate", "instantiate",
     [](surroundings& w) { w.api.instantiate(w.nothing, w.captured.id(), place::current()); }},
    {"copy_from_pageable", "copy",
     [](surroundings& w) { copy(w.captured, read<float>{w.pageable}, write<float>{w.data}); }},
    {"copy_to_pageable", "copy",
     [](surroundings& w) { copy(w.captured, read<float>{w.data}, write<float>{w.pageable}); }},
    {"wait_outside", "event wait", [](surroundings& w) { w.outside.wait(w.captured); }},
    {"wait_never_recorded", "event wait", [](surroundings& w) { w.never.wait(w.captured); }},
    {"wait_of_ended_capture", "event wait", [](surroundings& w) { w.ended.wait(w.captured); }},
    {"launch_failure", "kernel 'too wide'",
     [](surroundings& w) {
       enqueue_kernel(w.captured, "too wide", &launch_too_many_threads, no_arguments{});
     }},
};

TEST_P(a_call_in_a_capture, is_refused_by_name_and_leaves_the_stream_usable) {
  stream other{gpu()};
  event outside{gpu()}, never{gpu()}, inside{gpu()}, ended{gpu()};
  outside.record(other);
  const graph earlier = capture(s(), [&](stream_ref c) { ended.record(c); });
  api().begin_capture(s().id(), place::current());
  const graph_id nothing = api().end_capture(s().id(), place::current());
  const executable_id step = api().instantiate(nothing, s().id(), place::current());
  const buffer<float> x = floats(1, 0.0f);
  std::vector<float> pageable(1, 1.0f);
  surroundings with{api(),
                    s(),
                    other,
                    step,
                    nothing,
                    outside,
                    never,
                    inside,
                    ended,
                    x.all(),
                    {pageable.data(), 1}};

  api().begin_capture(s().id(), place::current());
  inside.record(s());
  add_to(s(), x, 1.0f);
  const std::string text = message_of<capture_error>([&] { GetParam().make(with); });
  EXPECT_EQ(text.find(GetParam().call), 0u) << text;
  EXPECT_NE(text.find(gpu().name()), std::string::npos) << text;
  EXPECT_NE(text.find("capture_test.cpp"), std::string::npos) << text;
  EXPECT_EQ(error_slot(), 0);

  // A body that swallows the refusal gets no further, and no graph.
  const std::string later = message_of<capture_error>([&] { add_to(s(), x, 1.0f); });
  EXPECT_NE(later.find(GetParam().call), std::string::npos) << later;
  const std::string end =
      message_of<capture_error>([&] { api().end_capture(s().id(), place::current()); });
  EXPECT_EQ(end.find("end_capture"), 0u) << end;
  EXPECT_NE(end.find(GetParam().call), std::string::npos) << end;

  expect_usable(s());
  expect_usable(other);
  EXPECT_EQ(read_back(s(), x.all()).front(), 0.0f);
  api().destroy(step);
  api().destroy(nothing);
}

INSTANTIATE_TEST_SUITE_P(of_each_kind, a_call_in_a_capture, testing::ValuesIn(refused_calls),
                         [](const auto& tested) { return std::string{tested.param.name}; });

using cuda_capture = on_a_gpu;

TEST_F(cuda_capture, names_both_streams_of_a_wait_that_it_cannot_keep) {
  stream other{gpu()};
  event outside{gpu()};
  outside.record(other);
  const std::string text =
      message_of<capture_error>([&] { capture(s(), [&](stream_ref c) { outside.wait(c); }); });
  EXPECT_NE(text.find("stream 2"), std::string::npos) << text;
  EXPECT_NE(text.find("stream 1 (made at gpu.hpp"), std::string::npos) << text;
}

TEST_F(cuda_capture, names_the_stream_that_was_forked_and_not_joined) {
  const buffer<float> x = floats(10, 0.0f);
  stream joined{gpu()};
  stream left_open{gpu()};
  event forked{gpu()}, back{gpu()};
  const std::string text = message_of<capture_error>([&] {
    capture(s(), [&](stream_ref c) {
      forked.record(c);
      forked.wait(joined);
      forked.wait(left_open);
      add_to(joined, x, 1.0f);
      add_to(left_open, x, 1.0f);
      back.record(joined);
      back.wait(c);
    });
  });
  EXPECT_NE(text.find("stream 3 (made at capture_test.cpp"), std::string::npos) << text;
  EXPECT_EQ(text.find("stream 2 "), std::string::npos) << text;
  expect_usable(s());
  expect_usable(joined);
  expect_usable(left_open);
}

TEST_F(cuda_capture, finds_work_that_came_after_the_join) {
  const buffer<float> x = floats(10, 0.0f);
  stream side{gpu()};
  event forked{gpu()}, back{gpu()};
  const std::string text = message_of<capture_error>([&] {
    capture(s(), [&](stream_ref c) {
      forked.record(c);
      forked.wait(side);
      back.record(side);
      back.wait(c);
      add_to(side, x, 1.0f);
    });
  });
  EXPECT_NE(text.find("stream 2"), std::string::npos) << text;
  expect_usable(side);
}

// Whether CUDA minds is its own affair; either way the stream is named or the graph is whole.
TEST_F(cuda_capture, of_a_fork_without_work_is_whole_or_names_it) {
  const buffer<float> x = floats(10, 0.0f);
  stream side{gpu()};
  event forked{gpu()};
  try {
    const graph made = capture(s(), [&](stream_ref c) {
      add_to(c, x, 1.0f);
      forked.record(c);
      forked.wait(side);
    });
    RecordProperty("fork_without_work", "accepted");
    EXPECT_EQ(made.nodes(), 1u);
  } catch (const capture_error& refusal) {
    RecordProperty("fork_without_work", "refused");
    EXPECT_NE(std::string{refusal.what()}.find("stream 2"), std::string::npos) << refusal.what();
  }
  expect_usable(side);
}

TEST_F(cuda_capture, is_not_merged_with_another) {
  stream other{gpu()};
  event first{gpu()};
  api().begin_capture(s().id(), place::current());
  first.record(s());
  EXPECT_THROW(capture(other, [&](stream_ref c) { first.wait(c); }), capture_error);
  api().destroy(api().end_capture(s().id(), place::current()));
  expect_usable(s());
  expect_usable(other);
}

TEST_F(cuda_capture, ends_where_it_began_only) {
  const buffer<float> x = floats(10, 0.0f);
  stream side{gpu()};
  event forked{gpu()}, back{gpu()};
  const std::string none =
      message_of<capture_error>([&] { api().end_capture(s().id(), place::current()); });
  EXPECT_NE(none.find("no capture was begun"), std::string::npos) << none;

  api().begin_capture(s().id(), place::current());
  forked.record(s());
  forked.wait(side);
  const stream_id side_id = static_cast<stream_ref>(side).id();
  EXPECT_THROW(api().end_capture(side_id, place::current()), capture_error);
  EXPECT_TRUE(s().capturing());
  api().abandon_capture(s().id());
  expect_usable(s());
  expect_usable(side);
}

TEST_F(cuda_capture, ends_on_the_thread_that_began_it_only) {
  const buffer<float> x = floats(10, 0.0f);
  api().begin_capture(s().id(), place::current());
  add_to(s(), x, 1.0f);
  std::string text;
  std::thread{[&] {
    text = message_of<capture_error>([&] { api().end_capture(s().id(), place::current()); });
    reports said;
    api().abandon_capture(s().id());
    EXPECT_EQ(reports::texts().size(), 1u);
  }}.join();
  EXPECT_NE(text.find("another thread"), std::string::npos) << text;
  const graph_id made = api().end_capture(s().id(), place::current());
  EXPECT_EQ(api().node_count(made), 1u);
  api().destroy(made);
  expect_usable(s());
}

TEST_F(cuda_capture, is_abandoned_in_every_state) {
  const buffer<float> x = floats(10, 0.0f);
  reports said;
  const stream_id id = s().id();
  api().abandon_capture(id);  // none was begun

  api().begin_capture(id, place::current());
  api().abandon_capture(id);  // empty
  expect_usable(s());

  api().begin_capture(id, place::current());
  add_to(s(), x, 1.0f);
  api().abandon_capture(id);  // whole
  api().abandon_capture(id);  // again
  expect_usable(s());

  api().begin_capture(id, place::current());
  EXPECT_THROW(s().synchronize(), capture_error);
  api().abandon_capture(id);  // refused by us
  expect_usable(s());

  api().begin_capture(id, place::current());
  EXPECT_THROW(external(s(), "breaks it", {}, [](void* native) { synchronize_native(native); }),
               capture_error);
  api().abandon_capture(id);  // broken by CUDA
  expect_usable(s());
  EXPECT_EQ(read_back(s(), x.all()), std::vector<float>(10, 0.0f));
  EXPECT_TRUE(reports::texts().empty());
}

TEST_F(cuda_capture, ends_with_the_stream_that_is_destroyed_in_it) {
  reports said;
  {
    stream dying{gpu()};
    api().begin_capture(static_cast<stream_ref>(dying).id(), place::current());
  }
  EXPECT_TRUE(reports::texts().empty());
  expect_usable(s());
}

TEST_F(cuda_capture, passes_on_what_the_body_throws) {
  const buffer<float> x = floats(10, 0.0f);
  EXPECT_THROW(capture(s(),
                       [&](stream_ref c) {
                         add_to(c, x, 1.0f);
                         throw std::out_of_range{"mine"};
                       }),
               std::out_of_range);
  expect_usable(s());
}

TEST_F(cuda_capture, lets_memory_be_allocated_and_given_back) {
  const buffer<float> x = floats(10, 2.0f);
  std::byte* block = nullptr;
  std::optional<pinned<float>> host;
  reports said;
  const graph made = capture(s(), [&](stream_ref c) {
    block = api().allocate(memory_kind::device, 64 << 20, place::current());
    host.emplace(gpu(), 10);
    std::byte* const brief = api().allocate(memory_kind::device, 1 << 20, place::current());
    api().release(memory_kind::device, brief);
    pinned<float> dying{gpu(), 10};
    copy(c, read<float>{x}, write<float>{host->all()});
  });
  EXPECT_EQ(made.nodes(), 1u);
  made.instantiate(s()).launch(s());
  s().synchronize();
  EXPECT_EQ((*host)[9], 2.0f);
  EXPECT_TRUE(reports::texts().empty());
  api().release(memory_kind::device, block);
}

TEST_F(cuda_capture, that_runs_out_of_memory_says_so) {
  const std::size_t too_much = 2 * gpu().memory().total;
  try {
    capture(s(),
            [&](stream_ref) { api().allocate(memory_kind::device, too_much, place::current()); });
    FAIL() << "twice the card's memory was given out";
  } catch (const out_of_memory& failure) {
    EXPECT_EQ(failure.asked(), too_much);
    EXPECT_GT(failure.free(), 0u);
  }
  expect_usable(s());
}

TEST_F(cuda_capture, goes_on_when_the_body_can_do_with_less_memory) {
  const buffer<float> x = floats(10, 0.0f);
  const std::size_t too_much = 2 * gpu().memory().total;
  const graph made = capture(s(), [&](stream_ref c) {
    EXPECT_THROW(api().allocate(memory_kind::device, too_much, place::current()), out_of_memory);
    add_to(c, x, 1.0f);
  });
  EXPECT_EQ(made.nodes(), 1u);
}

TEST_F(cuda_capture, does_not_disturb_other_streams) {
  const buffer<float> x = floats(10, 0.0f);
  buffer<float> y = floats(10, 1.0f);
  stream other{gpu()};
  event before{gpu()};
  before.record(s());
  s().synchronize();
  std::vector<float> pageable(10, 3.0f);
  const auto work_elsewhere = [&] {
    EXPECT_TRUE(before.finished());
    before.synchronize();
    stream brief{gpu()};
    event made_here{gpu()};
    copy(other, read<float>{view<float>{pageable.data(), 10}}, write<float>{y});
    made_here.record(other);
    made_here.wait(brief);
    brief.synchronize();
    other.synchronize();
    EXPECT_EQ(read_back(other, y.all()).front(), 3.0f);
  };
  const graph made = capture(s(), [&](stream_ref c) {
    add_to(c, x, 1.0f);
    work_elsewhere();
    std::thread other_thread{[&] {
      for (int i = 0; i != 200; ++i) work_elsewhere();
    }};
    other_thread.join();
    add_to(c, x, 1.0f);
  });
  EXPECT_EQ(made.nodes(), 2u);
  expect_usable(other);
}

TEST_F(cuda_capture, survives_that_other_graphs_die_meanwhile) {
  const buffer<float> x = floats(10, 0.0f);
  const auto step = [&](stream_ref c) { add_to(c, x, 1.0f); };
  reports said;
  for (const bool on_this_thread : {true, false}) {
    std::optional<graph> dying{capture(s(), step)};
    std::optional<executable> dying_step{dying->instantiate(s())};
    std::optional<stream> dying_stream{gpu()};
    const auto let_die = [&] {
      dying_stream.reset();
      dying_step.reset();
      dying.reset();
    };
    const graph made = capture(s(), [&](stream_ref c) {
      add_to(c, x, 1.0f);
      on_this_thread ? let_die() : std::thread{let_die}.join();
      add_to(c, x, 1.0f);
    });
    EXPECT_EQ(made.nodes(), 2u);
  }
  EXPECT_TRUE(reports::texts().empty());
  expect_usable(s());
}

TEST_F(cuda_capture, leaves_an_event_of_its_own_without_meaning_outside) {
  event inside{gpu()};
  const graph made = capture(s(), [&](stream_ref c) { inside.record(c); });
  EXPECT_THROW((void)inside.finished(), device_error);
  EXPECT_THROW(inside.wait(s()), device_error);
  inside.record(s());
  inside.wait(s());
  inside.synchronize();
  EXPECT_TRUE(inside.finished());
}

}  // namespace
}  // namespace reprise::test
