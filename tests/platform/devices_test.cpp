// Which devices there are, what "auto" means, and how an unknown one is refused.
#include <algorithm>

#include "reprise/sim/journal.hpp"
#include "reprise/sim/processor.hpp"
#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

TEST(list_devices, has_the_cpu_last_and_it_is_usable) {
  const std::vector<device_row> rows = list_devices();
  ASSERT_GE(rows.size(), 2U) << "a kind that is not there is a row too";
  EXPECT_EQ(rows.back().name, "cpu");
  EXPECT_TRUE(rows.back().usable);
  EXPECT_EQ(rows.back().model, sim::processor_model());
  EXPECT_TRUE(has(rows.back().limits, "threads")) << rows.back().limits;
  EXPECT_TRUE(has(rows.back().limits, "generic")) << rows.back().limits;
}

TEST(list_devices, says_of_each_row_either_its_limits_or_why_it_cannot_be_used) {
  for (const device_row& row : list_devices()) {
    EXPECT_EQ(row.usable, row.why_not.empty()) << row.name;
    EXPECT_EQ(row.usable, !row.limits.empty()) << row.name;
    EXPECT_FALSE(has(row.why_not, "\n")) << row.name;
    EXPECT_EQ(row.usable && row.model.empty(), false) << row.name;
  }
}

TEST(list_devices, names_each_device_once_and_says_so_when_there_is_no_gpu) {
  std::vector<std::string> names;
  for (const device_row& row : list_devices()) names.push_back(row.name);
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
  const bool no_card = std::ranges::find(names, "cuda") != names.end();
  EXPECT_EQ(no_card, cuda_driver().empty());
}

TEST(auto_device, is_the_first_usable_one) {
  const std::vector<device_row> rows = list_devices();
  const std::string name = automatic_device();
  const auto chosen = std::ranges::find(rows, name, &device_row::name);
  ASSERT_NE(chosen, rows.end());
  EXPECT_TRUE(chosen->usable);
  EXPECT_TRUE(std::none_of(rows.begin(), chosen, [](const device_row& r) { return r.usable; }));
  EXPECT_EQ(open_device("auto").name(), name);
}

TEST(every_usable_device, opens_under_its_name_and_runs_work) {
  for (const device_row& row : list_devices()) {
    if (!row.usable) continue;
    const device opened = open_device(row.name);
    EXPECT_EQ(opened.name(), row.name);
    const stream work{opened};
    pool memory{opened};
    const buffer<int> x{memory, 4, work};
    fill(work, write<int>{x}, 3);
    EXPECT_EQ(read_back(work, x), std::vector<int>(4, 3));
  }
}

class unknown_device : public testing::TestWithParam<std::string> {};

TEST_P(unknown_device, is_refused_in_one_line_that_says_what_there_is) {
  const std::string message = message_of<usage_error>([&] { (void)open_device(GetParam()); });
  EXPECT_FALSE(has(message, "\n")) << message;
  EXPECT_TRUE(has(message, "cpu")) << message;
  // A card that cannot be opened is no name that nobody knows.
  EXPECT_TRUE(has(message, "sim:seed=N") || GetParam().starts_with("cuda:")) << message;
  for (const device_row& row : list_devices()) {
    if (!row.usable) continue;
    EXPECT_TRUE(has(message, row.name)) << message;
  }
  if (GetParam().find('\n') == std::string::npos) {
    EXPECT_TRUE(has(message, GetParam())) << message;
  }
}

INSTANTIATE_TEST_SUITE_P(names, unknown_device,
                         testing::Values("gpu", "", "CPU", " cpu", "cpu:0", "cpu ", "cuda",
                                         "cuda:", "cuda:9", "cuda:-1", "cuda:x", "cuda:0x",
                                         "cuda: 0", "cuda:+0", "cuda:99999999999", "sim",
                                         "sim:", "sim:7", "sim:seed=", "sim:seed=x", "sim:seed=-1",
                                         "sim:seed=18446744073709551616", "auto:1", "two\nlines"),
                         [](const auto& of) { return "number_" + std::to_string(of.index); });

TEST(simulated_gpu, opens_under_any_seed_and_runs_work) {
  for (const std::string name : {"sim:seed=0", "sim:seed=7", "sim:seed=18446744073709551615"}) {
    const auto seen = std::make_shared<sim::journal>();
    {
      const device opened = open_device(name, {.into = seen});
      EXPECT_EQ(opened.name(), name);
      const stream work{opened};
      pool memory{opened};
      const buffer<int> x{memory, 4, work};
      fill(work, write<int>{x}, 3);
      EXPECT_EQ(read_back(work, x), std::vector<int>(4, 3));
    }
    EXPECT_GE(seen->operations, 1U);
    EXPECT_TRUE(seen->findings.empty());
  }
}

TEST(simulated_gpu, is_never_what_auto_stands_for) {
  EXPECT_FALSE(has(automatic_device(), "sim"));
  for (const device_row& row : list_devices()) EXPECT_FALSE(has(row.name, "sim")) << row.name;
}

TEST(open_options, count_the_calls_of_the_seam) {
  const auto counts = std::make_shared<call_counts>();
  const device opened = open_device("cpu", {.threads = 1, .counts = counts});
  EXPECT_EQ((*counts)[seam_call::create_stream], 0U);
  const stream work{opened};
  EXPECT_EQ((*counts)[seam_call::create_stream], 1U);
  work.synchronize();
  EXPECT_EQ((*counts)[seam_call::synchronize], 1U);
}

TEST(open_options, count_several_devices_into_one_place) {
  const auto counts = std::make_shared<call_counts>();
  const device first = open_device("cpu", {.threads = 1, .counts = counts});
  const device second = open_device("cpu", {.threads = 1, .counts = counts});
  const stream a{first};
  const stream b{second};
  EXPECT_EQ((*counts)[seam_call::create_stream], 2U);
}

TEST(open_options, give_the_cpu_as_many_threads_as_were_asked_for) {
  EXPECT_EQ(device_ref{open_device("cpu", {.threads = 3, .counts = nullptr})}.traits().threads, 3);
  EXPECT_EQ(device_ref{open_device("cpu")}.traits().threads, sim::processor_threads());
}

void plain_body(cpu_call&, write<float>) {}
void fast_body(cpu_call&, write<float>) {}

TEST(open_options, take_the_variants_that_are_asked_for) {
  constexpr kernel<void(write<float>)> paint{"paint"};
  kernel_registry kernels;
  kernels.add(paint, {{device_kind::cpu, "generic", plain_body},
                      {device_kind::cpu, "generic", fast_body, "fast"}});
  const auto variant_of = [&](const open_options& options) {
    const device opened = open_device("cpu", options, kernels);
    return device_ref{opened}.kernels()->resolve(paint.id(), paint.name()).variant;
  };
  EXPECT_EQ(variant_of({}), "default");
  EXPECT_EQ(variant_of({.variants = {{"fast"}}}), "fast");
  EXPECT_EQ(variant_of({.variants = {{"fast", "another"}}}), "default");
  EXPECT_EQ(variant_of({.variants = {{"slow"}, {"fast", "paint"}}}), "fast");
}

TEST(open_device, takes_the_kernels_it_is_given) {
  const device bare = open_device("cpu", {.threads = 1, .counts = nullptr}, kernel_registry{});
  EXPECT_TRUE(device_ref{bare}.kernels()->resolved().empty());
  const device full = open_device("cpu", {.threads = 1, .counts = nullptr});
  EXPECT_FALSE(device_ref{full}.kernels()->resolved().empty());
}

TEST(cuda_versions, are_two_numbers_or_nothing) {
  for (const std::string& version : {cuda_toolkit(), cuda_driver()}) {
    if (version.empty()) continue;
    const std::size_t dot = version.find('.');
    ASSERT_NE(dot, std::string::npos) << version;
    EXPECT_GE(std::stoi(version.substr(0, dot)), 8) << version;
    EXPECT_TRUE(std::ranges::all_of(version.substr(dot + 1), [](char c) {
      return c >= '0' && c <= '9';
    })) << version;
  }
}

}  // namespace
}  // namespace reprise::test
