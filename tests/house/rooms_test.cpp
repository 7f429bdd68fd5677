// The include test: the tree keeps to the arrows, and each rule is shown to bite.
#include "tests/house/rooms.hpp"

#include <gtest/gtest.h>

namespace reprise::house {
namespace {

faults of(std::string name, std::string text) {
  return include_faults({std::move(name), std::move(text)});
}

TEST(rooms, include_only_along_the_arrows_of_the_house) {
  faults found;
  const auto files =
      sources_under({"reprise", "workloads", "scenarios", "bench", "apps", "examples"});
  for (const auto& file : files) {
    for (auto& one : include_faults(file)) found.push_back(std::move(one));
  }
  EXPECT_EQ(listed(found), "");
  EXPECT_GT(files.size(), 40u) << "the sources were not found";
}

TEST(rooms, are_all_in_the_table_of_arrows) {
  for (const auto& file : sources_under({"reprise"})) {
    EXPECT_TRUE(is_room(room_of(file.name))) << file.name;
  }
}

TEST(rooms, may_be_reached_over_several_arrows_but_never_upwards) {
  EXPECT_TRUE(may_use("ops", "base"));
  EXPECT_TRUE(may_use("platform", "kernel"));
  EXPECT_TRUE(may_use("tap", "formats"));
  EXPECT_FALSE(may_use("base", "device"));
  EXPECT_FALSE(may_use("kernel", "ops"));
  EXPECT_FALSE(may_use("sim", "cuda"));
  EXPECT_FALSE(may_use("ops", "formats"));
  EXPECT_FALSE(may_use("replay", "sim"));
  EXPECT_FALSE(may_use("platform", "workloads"));
}

TEST(rooms, an_include_against_the_arrows_is_found) {
  EXPECT_EQ(
      listed(of("reprise/base/error.hpp", "#pragma once\n#include \"reprise/device/view.hpp\"\n")),
      "reprise/base/error.hpp:2: reprise/device/view.hpp: no path of arrows leads from base to "
      "device\n");
  EXPECT_EQ(of("reprise/replay/step.cpp", "#include \"reprise/ops/math.hpp\"\n").size(), 1u);
  EXPECT_EQ(of("reprise/ops/math.hpp", "#  include <reprise/replay/step.hpp>\n").size(), 1u);
  EXPECT_EQ(of("reprise/ops/math.hpp", "#include \"workloads/decode/model.hpp\"\n").size(), 1u);
  EXPECT_EQ(of("reprise/ops/math.hpp", "#include \"reprise/kernel/kernel.hpp\"\n").size(), 0u);
}

TEST(rooms, an_include_in_a_comment_or_a_literal_is_none) {
  EXPECT_TRUE(of("reprise/base/a.hpp", "// #include \"reprise/ops/math.hpp\"\n").empty());
  EXPECT_TRUE(of("reprise/base/a.hpp", "/*\n#include \"reprise/ops/math.hpp\"\n*/\n").empty());
  EXPECT_FALSE(of("reprise/base/a.hpp", "/* */ #include \"reprise/ops/math.hpp\"\n").empty());
}

TEST(rooms, that_do_not_exist_and_paths_from_elsewhere_are_found) {
  EXPECT_EQ(of("reprise/ops/math.cpp", "#include \"reprise/attic/x.hpp\"\n").size(), 1u);
  EXPECT_EQ(of("reprise/ops/math.cpp", "#include \"math.hpp\"\n").size(), 1u);
  EXPECT_EQ(of("reprise/ops/math.cpp", "#include \"../kernel/kernel.hpp\"\n").size(), 1u);
}

TEST(rooms, only_platform_reaches_a_device_implementation) {
  const std::string simulated = "#include \"reprise/sim/device.hpp\"\n";
  EXPECT_TRUE(of("reprise/platform/platform.cpp", simulated).empty());
  EXPECT_EQ(of("reprise/replay/record.cpp", simulated).size(), 1u);
  EXPECT_EQ(of("workloads/decode/decode.cpp", simulated).size(), 1u);
  EXPECT_EQ(of("apps/reprise/main.cpp", "#include \"reprise/cuda/device.hpp\"\n").size(), 1u);
  EXPECT_TRUE(of("apps/reprise/main.cpp", "#include \"reprise/platform/platform.hpp\"\n").empty());
  EXPECT_TRUE(of("apps/reprise/main.cpp", "#include \"workloads/decode/decode.hpp\"\n").empty());
}

TEST(rooms, the_benches_use_workloads_and_are_used_by_the_command_alone) {
  EXPECT_TRUE(may_use("apps", "bench"));
  EXPECT_TRUE(may_use("bench", "workloads"));
  EXPECT_TRUE(may_use("bench", "platform"));
  EXPECT_FALSE(may_use("bench", "apps"));
  EXPECT_FALSE(may_use("workloads", "bench"));
  EXPECT_FALSE(may_use("replay", "bench"));
  EXPECT_FALSE(may_use("bench", "sim"));
  EXPECT_EQ(of("bench/replay/a.cpp", "#include \"reprise/cuda/device.hpp\"\n").size(), 1u);
  EXPECT_TRUE(of("bench/replay/a.cu", "#include \"reprise/cuda/call.cuh\"\n").empty());
  EXPECT_EQ(of("bench/replay/a.cpp", "#include <cuda_runtime.h>\n").size(), 1u);
}

TEST(rooms, scenarios_use_workloads_and_name_no_device_implementation) {
  EXPECT_TRUE(may_use("apps", "scenarios"));
  EXPECT_TRUE(may_use("scenarios", "workloads"));
  EXPECT_TRUE(may_use("scenarios", "platform"));
  EXPECT_FALSE(may_use("scenarios", "sim"));
  EXPECT_FALSE(may_use("scenarios", "bench"));
  EXPECT_FALSE(may_use("platform", "scenarios"));
  EXPECT_FALSE(may_use("workloads", "scenarios"));
  EXPECT_EQ(of("scenarios/a.cpp", "#include \"reprise/sim/controls.hpp\"\n").size(), 1u);
}

TEST(rooms, examples_use_the_library_alone_and_nobody_uses_them) {
  EXPECT_TRUE(may_use("examples", "platform"));
  EXPECT_FALSE(may_use("examples", "sim"));
  for (const std::string_view guest : {"apps", "bench", "scenarios", "workloads"}) {
    EXPECT_FALSE(may_use("examples", guest)) << guest;
    EXPECT_FALSE(may_use(guest, "examples")) << guest;
  }
}

TEST(rooms, only_platform_names_a_device_implementation) {
  const std::string naming = "auto device = sim::open_cpu(4);\n";
  EXPECT_TRUE(of("reprise/platform/platform.cpp", naming).empty());
  EXPECT_EQ(of("reprise/kernel/launch.cpp", naming).size(), 1u);
  EXPECT_EQ(of("apps/reprise/main.cpp", "auto d = reprise::cuda::open(0);\n").size(), 1u);
  EXPECT_TRUE(of("apps/reprise/main.cpp", "auto kind = device_kind::cuda;  // sim::x\n").empty());
}

TEST(rooms, only_the_cuda_room_and_cu_files_include_cuda_headers) {
  for (const std::string text : {"#include <cuda_runtime.h>\n", "#include <cuda.h>\n",
                                 "#include <cublasLt.h>\n", "#include <cuda/atomic>\n"}) {
    EXPECT_TRUE(of("reprise/cuda/device.cpp", text).empty()) << text;
    EXPECT_TRUE(of("reprise/ops/scale.cu", text).empty()) << text;
    EXPECT_EQ(of("reprise/ops/scale.hpp", text).size(), 1u) << text;
    EXPECT_EQ(of("reprise/device/graph.cpp", text).size(), 1u) << text;
  }
}

TEST(rooms, a_cu_file_may_include_the_call_header_and_nothing_else_of_the_cuda_room) {
  EXPECT_TRUE(of("reprise/ops/scale.cu", "#include \"reprise/cuda/call.cuh\"\n").empty());
  EXPECT_EQ(of("reprise/ops/scale.cu", "#include \"reprise/cuda/device.hpp\"\n").size(), 1u);
  EXPECT_EQ(of("reprise/ops/scale.cpp", "#include \"reprise/cuda/call.cuh\"\n").size(), 1u);
}

TEST(rooms, libraries_stay_where_every_compiler_can_read_them) {
  EXPECT_TRUE(of("reprise/base/error.cpp", "#include <fmt/core.h>\n").empty());
  EXPECT_EQ(of("reprise/base/error.hpp", "#include <fmt/core.h>\n").size(), 1u);
  EXPECT_EQ(of("reprise/ops/scale.cu", "#include <fmt/core.h>\n").size(), 1u);
  EXPECT_EQ(of("reprise/base/config.hpp", "#include <toml++/toml.h>\n").size(), 1u);
  EXPECT_EQ(of("reprise/ops/scale.cu", "#include <nlohmann/json.hpp>\n").size(), 1u);
}

}  // namespace
}  // namespace reprise::house
