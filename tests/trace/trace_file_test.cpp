// Traces as text: one text for a trace, one trace for a text, and a line for whatever is wrong.
#include "reprise/trace/trace_file.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "tests/trace/trace_support.hpp"

namespace reprise::test {
namespace {

// Every kind of call with every field that it has, and every kind of work.
trace one_of_each() {
  trace all;
  all.device = "cuda:0";
  all.bodies = device_kind::cuda;
  all.left_out = 3;
  for (std::size_t i = 0; i < call_kinds; ++i) {
    traced_call call;
    call.kind = static_cast<call_kind>(i);
    call.thread = 2;
    call.failed = static_cast<failure>(i % failures);
    if (i % 3 != 0) call.at = {"a \"quoted\" \\ name\t.cpp", 17};
    const std::uint32_t fields = fields_of(call.kind);
    if ((fields & has_memory) != 0) call.memory = memory_kind::pinned;
    if ((fields & has_bytes) != 0) call.bytes = ~std::uint64_t{0};
    if ((fields & has_block) != 0) call.block = block_number{5};
    if ((fields & has_executable) != 0) call.executable = executable_id{6};
    if ((fields & has_graph) != 0) call.graph = graph_id{7};
    if ((fields & has_nodes) != 0) call.nodes = {node_id{8}, node_id{9}};
    if ((fields & has_stream) != 0) call.stream = stream_id{10};
    if ((fields & has_event) != 0) call.event = event_id{11};
    if ((fields & has_node) != 0) call.node = node_id{12};
    if ((fields & has_place) != 0) call.place = place_number{13};
    if ((fields & has_on) != 0) call.on = true;
    if ((fields & has_made) != 0) call.made = graph_id{14};
    if ((fields & has_answer) != 0) call.answer = true;
    if ((fields & has_count) != 0) call.count = 15;
    const bool works = (fields & has_work) != 0;
    for (std::size_t w = 0; w < (works ? work_kinds : 1); ++w) {
      if (works) {
        call.work = {};
        call.work.kind = static_cast<work_kind>(w);
        call.work.label = "a \x01 label\n\xff";
        call.work.accesses = {{{memory_space::block, 1, 2, 3}, false},
                              {{memory_space::host, 4, 5, 6}, true},
                              {{memory_space::null, 0, 0, 7}, false}};
        if (call.work.kind == work_kind::copy) call.work.from = {memory_space::host, 1, 2, 3};
        if (call.work.kind == work_kind::copy || call.work.kind == work_kind::fill) {
          call.work.to = {memory_space::block, 4, 5, 6};
        }
        if (call.work.kind == work_kind::fill) call.work.pattern_bytes = 4;
        if (call.work.kind == work_kind::event_wait) call.work.event = event_id{16};
      }
      all.calls.push_back(call);
    }
  }
  return all;
}

TEST(trace_file, writes_one_line_a_call) {
  trace small;
  small.device = "cpu";
  traced_call call;
  call.kind = call_kind::create_stream;
  call.thread = 1;
  call.stream = stream_id{1};
  call.at = {"decode.cpp", 52};
  small.calls.push_back(call);
  call = {};
  call.kind = call_kind::submit;
  call.thread = 2;
  call.stream = stream_id{1};
  call.work.kind = work_kind::host_call;
  call.work.label = "say \"hello\"";
  call.work.accesses = {{{memory_space::block, 1, 256, 64}, true}};
  call.failed = failure::capture_error;
  small.calls.push_back(call);
  EXPECT_EQ(trace_text(small),
            "reprise-trace 1\n"
            "device \"cpu\" cpu\n"
            "t1 create_stream stream=1 at=\"decode.cpp\":52\n"
            "t2 submit stream=1 work=host_call label=\"say \\\"hello\\\"\" "
            "writes=block1+256:64 node=0 failed=capture_error\n"
            "end calls=2 left_out=0\n");
}

TEST(trace_file, gives_back_the_trace_that_was_written) {
  const trace all = one_of_each();
  EXPECT_EQ(parse_trace(trace_text(all)), all);
  const trace taken = trace_of("cpu", forked_program);
  EXPECT_GT(taken.calls.size(), 30U);
  EXPECT_EQ(parse_trace(trace_text(taken)), taken);
}

TEST(trace_file, gives_back_the_text_that_was_read) {
  const std::string text = trace_text(one_of_each());
  EXPECT_EQ(trace_text(parse_trace(text)), text);
}

TEST(trace_file, goes_through_a_file) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("reprise_trace_file_test_" + std::to_string(getpid()) + ".trace");
  const trace all = one_of_each();
  write_trace(all, file);
  EXPECT_EQ(read_trace(file), all);
  std::filesystem::remove(file);
  EXPECT_TRUE(has(message_of<usage_error>([&] { (void)read_trace(file); }), "cannot be read"));
  EXPECT_TRUE(
      has(message_of<usage_error>([&] { write_trace(all, file / "x"); }), "cannot be written"));
}

struct wrong_text {
  std::string calls;
  std::string says;
};

TEST(trace_file, that_is_wrong_is_refused_with_its_line_and_what_was_expected) {
  const wrong_text all[] = {
      {"t1 create_stream\n", "line 3: \" stream=\" is expected, and \"\" is there"},
      {"t1 create_stream stream=1 \n", "line 3: the end of the line is expected"},
      {"t1 create_stream  stream=1\n", "line 3: \" stream=\" is expected"},
      {"t1 create_stream stream=1 stream=2\n", "line 3: the end of the line"},
      {"t1 create_stream stream=01\n", "line 3: a whole number up to"},
      {"t1 create_stream stream=-1\n", "line 3: a whole number up to"},
      {"t1 create_stream stream=18446744073709551616\n", "line 3: a whole number up to"},
      {"t4294967296 settle\n", "line 3: a whole number up to 4294967295"},
      {"t1 fly\n", "line 3: a call of the seam such as submit or launch is expected, and \"fly\""},
      {"settle\n", "line 3: \"t\" is expected"},
      {"\n", "line 3: \"t\" is expected"},
      {"t1 settle\r\n", "line 3: a call of the seam"},
      {"t1 settle at=\"\":0\n", "line 3: a source line without name and number"},
      {"t1 settle at=\"a\n", "line 3: printable text and its quote is expected"},
      {"t1 settle at=\"\\x41\":1\n", "line 3: \\\", \\\\ or \\xHH of an unprintable byte"},
      {"t1 settle at=\"\\xFF\":1\n", "line 3: \\\", \\\\ or \\xHH of an unprintable byte"},
      {"t1 settle at=\"\\x0\":1\n", "line 3: \\\", \\\\ or \\xHH of an unprintable byte"},
      {"t1 settle failed=none\n", "line 3: a kind of error such as device_error"},
      {"t1 settle failed=other_error\n", "line 3: the end of the line"},
      {"t1 release memory=card block=1\n", "line 3: device or pinned is expected"},
      {"t1 finished event=1 answer=maybe\n", "line 3: yes or no is expected"},
      {"t1 clone_without graph=1 nodes=[1,] made=2\n", "line 3: a whole number up to"},
      {"t1 clone_without graph=1 nodes=[1 made=2\n", "line 3: \"]\" is expected"},
      {"t1 submit stream=1 work=dance label=\"x\" node=0\n", "line 3: a kind of work such as"},
      {"t1 submit stream=1 work=fill label=\"x\" to=block1+0:4 pattern=256 node=0\n",
       "line 3: a whole number up to 255"},
      {"t1 submit stream=1 work=kernel label=\"x\" reads=card1+0:4 node=0\n",
       "line 3: a range such as block1+0:64"},
      {"t1 submit stream=1 work=kernel label=\"x\" reads=block1-4:4 node=0\n",
       "line 3: \"+\" is expected"},
      {"t1 submit stream=1 work=copy label=\"x\" to=block1+0:4 node=0\n",
       "line 3: \" from=\" is expected"},
      {"t1 settle\nt1 settle\nt1\n", "line 5: \" \" is expected"},
  };
  for (const wrong_text& wrong : all) {
    const std::string said = message_of<usage_error>([&] { (void)hand_written(wrong.calls); });
    EXPECT_TRUE(has(said, "trace, " + wrong.says)) << wrong.calls << said;
    EXPECT_TRUE(has(said, "; ")) << "no remedy: " << said;
    EXPECT_FALSE(has(said, "\n")) << said;
  }
}

TEST(trace_file, with_a_wrong_beginning_or_end_is_refused) {
  const auto said = [](std::string_view text) {
    return message_of<usage_error>([&] { (void)parse_trace(text, "run.trace"); });
  };
  const std::string begin = "reprise-trace 1\ndevice \"cpu\" cpu\n";
  EXPECT_TRUE(has(said(""), "run.trace, line 1: the text ends before its last line"));
  EXPECT_TRUE(has(said("reprise-trace 2\n"), "the first line of a trace of this version"));
  EXPECT_TRUE(has(said("\x7f"
                       "ELF\n"),
                  "line 1: \"reprise-trace 1\""));
  EXPECT_TRUE(has(said("reprise-trace 1\ndevice \"cpu\" tpu\n"), "line 2: cpu or cuda"));
  EXPECT_TRUE(has(said(begin), "line 3: the text ends before its last line"));
  EXPECT_TRUE(has(said(begin + "end calls=0 left_out=0"), "line 3: the text ends"));
  EXPECT_TRUE(has(said(begin + "end calls=1 left_out=0\n"), "line 3: 0 calls are there"));
  EXPECT_TRUE(has(said(begin + "end calls=0 left_out=0\nend\n"), "line 4: a line after the end"));
  EXPECT_TRUE(parse_trace(begin + "end calls=0 left_out=0\n").calls.empty());
}

TEST(trace_file, that_was_cut_anywhere_is_refused) {
  const std::string text = trace_text(one_of_each());
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_THROW((void)parse_trace(text.substr(0, length)), usage_error) << length;
  }
}

// Whatever bytes come: one line of refusal, or a trace whose text they are.
TEST(trace_file, of_any_bytes_is_refused_or_read_exactly) {
  const std::string text = trace_text(trace_of("cpu", forked_program));
  std::mt19937 random{7};
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>{0, n - 1}(random);
  };
  int read = 0;
  int refused = 0;
  for (int i = 0; i < 8000; ++i) {
    std::string changed = text;
    for (std::size_t changes = 1 + below(3); changes > 0; --changes) {
      const std::size_t at = below(changed.size());
      switch (below(4)) {
        case 0: changed[at] = static_cast<char>(below(256)); break;
        case 1: changed[at] = "0123456789 =+:,\"\\[]"[below(19)]; break;
        case 2: changed.erase(at, 1 + below(8)); break;
        default: changed.insert(at, changed.substr(below(changed.size()), below(16))); break;
      }
    }
    try {
      EXPECT_EQ(trace_text(parse_trace(changed)), changed);
      ++read;
    } catch (const usage_error& refusal) {
      EXPECT_TRUE(std::string_view{refusal.what()}.starts_with("trace, line ")) << refusal.what();
      EXPECT_FALSE(has(refusal.what(), "\n"));
      ++refused;
    }
  }
  EXPECT_GT(read, 200);
  EXPECT_GT(refused, 2000);
}

}  // namespace
}  // namespace reprise::test
