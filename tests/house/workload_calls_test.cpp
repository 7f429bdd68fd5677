// No workload calls anything of capture, graph, executable or event; and the check can tell.
#include "tests/house/workload_calls.hpp"

#include <gtest/gtest.h>

namespace reprise::house {
namespace {

faults of(std::string text) {
  return capture_api_faults({"workloads/decode/decode.cpp", std::move(text)});
}

TEST(workloads, call_nothing_of_capture_graph_executable_or_event) {
  faults found;
  const auto files = sources_under({"workloads"});
  for (const auto& file : files) {
    for (auto& one : capture_api_faults(file)) found.push_back(std::move(one));
  }
  EXPECT_EQ(listed(found), "");
  EXPECT_FALSE(files.empty()) << "no workload was found";
}

// Nor does a bench, but for the peer that calls CUDA itself: it measures the path of `run`.
TEST(benches, call_nothing_of_capture_graph_executable_or_event) {
  faults found;
  int checked = 0;
  for (const auto& file : sources_under({"bench"})) {
    if (file.ends_with(".cu")) continue;
    ++checked;
    for (auto& one : capture_api_faults(file)) found.push_back(std::move(one));
  }
  EXPECT_EQ(listed(found), "");
  EXPECT_GT(checked, 0) << "no bench was found";
}

TEST(workloads, that_capture_by_themselves_are_found) {
  for (const std::string text : {
           "#include \"reprise/device/graph.hpp\"\n",
           "#include \"reprise/device/api.hpp\"\n",
           "auto made = capture(s, body);\n",
           "made.instantiate(s);\n",
           "std::optional<executable> fast;\n",
           "reprise::graph made;\n",
           "event done{gpu};\n",
           "gpu.api().launch(id, s, from);\n",
           "api->begin_capture(s, from);\n",
       }) {
    EXPECT_FALSE(of(text).empty()) << text;
  }
}

TEST(workloads, may_speak_of_captures_in_comments_texts_and_counts) {
  EXPECT_EQ(
      listed(of("// the step is captured: a graph, an executable\n"
                "if (done.how == ran::captured) ++steps.captured;\n"
                "out[\"graph\"] = R\"(event)\";\n"
                "const char quote = '\"'; int many = 1'000; /* capture */ char other = '\"';\n")),
      "");
}

TEST(workloads, the_line_of_a_find_is_told) {
  EXPECT_EQ(listed(of("\n/* capture\n */\nauto made = capture(s, body);\n")),
            "workloads/decode/decode.cpp:4: a workload uses 'capture'\n");
}

}  // namespace
}  // namespace reprise::house
