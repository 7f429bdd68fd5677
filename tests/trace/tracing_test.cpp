// The tracing decorator: every call of the seam, by small numbers, without data and addresses.
#include "reprise/trace/tracing.hpp"

#include <algorithm>

#include "reprise/device/faulty.hpp"
#include "reprise/device/host_thread.hpp"
#include "tests/trace/trace_support.hpp"

namespace reprise::test {
namespace {

class tracing_on : public testing::TestWithParam<std::string> {};

const traced_call* find(const trace& in, call_kind kind) {
  const auto found = std::ranges::find(in.calls, kind, &traced_call::kind);
  return found == in.calls.end() ? nullptr : &*found;
}

std::vector<const traced_call*> works(const trace& in, work_kind kind) {
  std::vector<const traced_call*> found;
  for (const traced_call& call : in.calls) {
    if (call.kind == call_kind::submit && call.work.kind == kind) found.push_back(&call);
  }
  return found;
}

TEST_P(tracing_on, names_its_device_and_whose_bodies_it_runs) {
  const trace taken = trace_of(GetParam(), [](device_ref) {});
  EXPECT_EQ(taken.device, GetParam());
  EXPECT_EQ(taken.bodies, GetParam().starts_with("cuda") ? device_kind::cuda : device_kind::cpu);
  EXPECT_EQ(taken.left_out, 0U);
}

TEST_P(tracing_on, numbers_handles_in_order_of_appearance) {
  const trace taken = trace_of(GetParam(), forked_program);
  std::uint64_t streams = 0;
  std::uint64_t events = 0;
  for (const traced_call& call : taken.calls) {
    if (call.kind == call_kind::create_stream) {
      EXPECT_EQ(static_cast<std::uint64_t>(call.stream), ++streams);
    }
    if (call.kind == call_kind::create_event) {
      EXPECT_EQ(static_cast<std::uint64_t>(call.event), ++events);
    }
  }
  EXPECT_EQ(streams, 2U);
  EXPECT_GE(events, 2U);
  EXPECT_EQ(find(taken, call_kind::end_capture)->made, graph_id{1});
  EXPECT_EQ(find(taken, call_kind::instantiate)->executable, executable_id{1});
  EXPECT_EQ(find(taken, call_kind::clone_without)->made, graph_id{2});
}

TEST_P(tracing_on, gives_captured_work_a_node_and_eager_work_none) {
  const trace taken = trace_of(GetParam(), forked_program);
  const auto copies = works(taken, work_kind::copy);
  ASSERT_EQ(copies.size(), 4U);
  EXPECT_EQ(copies[0]->node, node_id::none);
  EXPECT_EQ(copies[1]->node, node_id::none);
  EXPECT_EQ(works(taken, work_kind::fill)[0]->node, node_id{1});
  EXPECT_EQ(copies[2]->node, node_id{2});
  EXPECT_EQ(copies[3]->node, node_id{3});
  EXPECT_EQ(find(taken, call_kind::enable)->node, node_id{1});
  EXPECT_EQ(find(taken, call_kind::clone_without)->nodes, std::vector<node_id>{node_id{1}});
}

TEST_P(tracing_on, says_where_work_touches_blocks_and_host_memory) {
  const trace taken = trace_of(GetParam(), [](device_ref on) {
    const stream s{on};
    pool memory{on};
    const buffer<int> x{memory, 64, s};
    const buffer<int> y{memory, 64, s};
    const std::vector<int> first(64);
    std::vector<int> second(64);
    copy(s, read<int>{view<const int>{first.data(), 64}}, write<int>{x});
    copy(s, read<int>{x}, write<int>{y});
    copy(s, read<int>{y}, write<int>{view<int>{second.data(), 64}});
    copy(s, read<int>{view<const int>{x.all()}.subview(0, 16)},
         write<int>{view<int>{second.data() + 16, 16}});
    s.synchronize();
  });
  const auto copies = works(taken, work_kind::copy);
  ASSERT_EQ(copies.size(), 4U);
  const traced_range x{memory_space::block, 1, copies[0]->work.to.offset, 256};
  const traced_range y{memory_space::block, 1, copies[1]->work.to.offset, 256};
  const traced_range first{memory_space::host, 1, 0, 256};
  const traced_range second{memory_space::host, 2, 0, 256};
  EXPECT_GE(y.offset, x.offset + 256);
  EXPECT_EQ(copies[0]->work.from, first);
  EXPECT_EQ(copies[0]->work.to, x);
  EXPECT_EQ(copies[1]->work.from, x);
  EXPECT_EQ(copies[2]->work.from, y);
  EXPECT_EQ(copies[2]->work.to, second);
  const traced_range part{memory_space::host, 2, 64, 64};
  EXPECT_EQ(copies[3]->work.to, part);
  const std::vector<traced_access> touched{{y, false}, {second, true}};
  EXPECT_EQ(copies[2]->work.accesses, touched);
}

TEST_P(tracing_on, says_from_which_line_a_call_came) {
  std::uint32_t line = 0;
  const trace taken = trace_of(GetParam(), [&](device_ref on) {
    const stream s{on};
    s.synchronize();
    line = std::source_location::current().line() - 1;
  });
  const traced_line expected{"tracing_test.cpp", line};
  EXPECT_EQ(find(taken, call_kind::synchronize_stream)->at, expected);
  EXPECT_EQ(find(taken, call_kind::destroy_stream)->at, traced_line{});
}

TEST_P(tracing_on, says_how_a_call_failed) {
  const trace taken = trace_of(GetParam(), [](device_ref on) {
    const stream s{on};
    EXPECT_THROW(capture(s, [&](stream_ref c) { c.synchronize(); }), capture_error);
    s.synchronize();
  });
  std::vector<failure> waits;
  for (const traced_call& call : taken.calls) {
    if (call.kind == call_kind::synchronize_stream) waits.push_back(call.failed);
  }
  EXPECT_EQ(waits, (std::vector<failure>{failure::capture_error, failure::none}));
}

TEST_P(tracing_on, takes_each_error_for_its_own_kind) {
  const auto plan = std::make_shared<fault_plan>();
  const auto log = std::make_shared<trace_log>();
  const auto traced = tracing(faulty(open_bare(GetParam()), plan), log);
  const auto here = std::source_location::current();
  plan->fail_call(1);
  EXPECT_THROW(traced->allocate(memory_kind::device, 64, here), out_of_memory);
  plan->fail_call(1);
  EXPECT_THROW((void)traced->create_stream(stream_priority::usual, here), device_error);
  const stream_id s = traced->create_stream(stream_priority::usual, here);
  plan->fail_call(1);
  EXPECT_THROW(traced->begin_capture(s, here), capture_error);
  traced->destroy(s);
  const trace taken = log->so_far();
  ASSERT_EQ(taken.calls.size(), 5U);
  EXPECT_EQ(taken.calls[0].failed, failure::out_of_memory);
  EXPECT_EQ(taken.calls[0].block, block_number::none);
  EXPECT_EQ(taken.calls[1].failed, failure::device_error);
  EXPECT_EQ(taken.calls[1].stream, stream_id::none);
  EXPECT_EQ(taken.calls[2].stream, stream_id{1});
  EXPECT_EQ(taken.calls[3].failed, failure::capture_error);
}

TEST_P(tracing_on, numbers_places_in_a_capture) {
  const trace taken = trace_of(GetParam(), placed_program);
  std::vector<std::pair<call_kind, place_number>> seen;
  for (const traced_call& call : taken.calls) {
    if ((fields_of(call.kind) & has_place) != 0) seen.emplace_back(call.kind, call.place);
  }
  const std::vector<std::pair<call_kind, place_number>> expected{
      {call_kind::place_in_capture, place_number::none},
      {call_kind::place_in_capture, place_number{1}},
      {call_kind::place_in_capture, place_number{2}},
      {call_kind::precedes, place_number{1}},
      {call_kind::precedes, place_number{2}}};
  EXPECT_EQ(seen, expected);
  EXPECT_TRUE(find(taken, call_kind::precedes)->answer);
}

TEST_P(tracing_on, gives_the_same_text_for_the_same_program) {
  EXPECT_EQ(trace_text(trace_of(GetParam(), forked_program)),
            trace_text(trace_of(GetParam(), forked_program)));
}

TEST_P(tracing_on, changes_nothing_of_what_the_program_gets) {
  const auto log = std::make_shared<trace_log>();
  const device opened{tracing(open_bare(GetParam()), log)};
  const stream s{opened};
  pool memory{opened};
  const buffer<int> x{memory, 8, s};
  const graph made = capture(s, [&](stream_ref c) { fill(c, write<int>{x}, 5); });
  EXPECT_EQ(made.size(), 1U);
  const executable replayed = made.instantiate(s);
  fill(s, write<int>{x}, 4);
  EXPECT_EQ(read_back(s, x), std::vector<int>(8, 4));
  replayed.launch(s);
  EXPECT_EQ(read_back(s, x), std::vector<int>(8, 5));
}

TEST_P(tracing_on, is_asked_for_when_a_device_is_opened) {
  const auto log = std::make_shared<trace_log>();
  {
    const device opened =
        open_device(GetParam(), {.threads = 1, .counts = nullptr, .trace = log}, kernel_registry{});
    const stream made{opened};
  }
  EXPECT_EQ(log->so_far().device, GetParam());
  EXPECT_NE(find(log->so_far(), call_kind::create_stream), nullptr);
}

TEST_P(tracing_on, numbers_threads_in_order_of_their_first_call) {
  const trace taken = trace_of(GetParam(), [](device_ref on) {
    const stream s{on};
    host_thread{on, [&] { const event made{on}; }}.join();
  });
  EXPECT_EQ(find(taken, call_kind::create_stream)->thread, 1U);
  EXPECT_EQ(find(taken, call_kind::create_event)->thread, 2U);
  EXPECT_EQ(find(taken, call_kind::destroy_stream)->thread, 1U);
}

TEST_P(tracing_on, numbers_a_block_anew_when_its_memory_is_given_out_again) {
  const auto log = std::make_shared<trace_log>();
  const auto traced = tracing(open_bare(GetParam()), log);
  for (int i = 0; i < 3; ++i) {
    std::byte* const block =
        traced->allocate(memory_kind::device, 4096, std::source_location::current());
    traced->release(memory_kind::device, block);
  }
  const trace taken = log->so_far();
  ASSERT_EQ(taken.calls.size(), 6U);
  for (std::uint64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(taken.calls[i].block, block_number{i / 2 + 1});
  }
}

TEST_P(tracing_on, a_kernel_that_uses_a_released_block_still_names_it) {
  const auto log = std::make_shared<trace_log>();
  const auto traced = tracing(open_bare(GetParam()), log);
  const auto here = std::source_location::current();
  const stream_id s = traced->create_stream(stream_priority::usual, here);
  std::byte* const block = traced->allocate(memory_kind::device, 4096, here);
  traced->release(memory_kind::device, block);
  const access touched{block + 128, 64, true};
  work what;
  what.label = "late";
  what.accesses = {&touched, 1};
  what.kernel.invoke = [](void*, const std::byte*) {};
  what.place = here;
  (void)traced->submit(s, what);
  traced->destroy(s);
  const traced_range expected{memory_space::block, 1, 128, 64};
  EXPECT_EQ(log->so_far().calls[3].work.accesses.at(0).where, expected);
}

TEST_P(tracing_on, stops_at_a_full_log_and_counts_what_it_leaves_out) {
  const auto log = std::make_shared<trace_log>(3);
  const auto traced = tracing(open_bare(GetParam()), log);
  const auto here = std::source_location::current();
  const stream_id s = traced->create_stream(stream_priority::usual, here);
  for (int i = 0; i < 4; ++i) traced->synchronize(s, here);
  traced->destroy(s);
  EXPECT_EQ(log->so_far().calls.size(), 3U);
  EXPECT_EQ(log->so_far().left_out, 3U);
}

INSTANTIATE_TEST_SUITE_P(devices, tracing_on, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
