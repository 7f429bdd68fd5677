// What the simulated GPU says of the processor it is simulated on.
#include "reprise/sim/processor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "reprise/sim/device.hpp"

namespace reprise::sim {
namespace {

TEST(processor, has_a_chain_that_ends_in_generic_and_names_each_rung_once) {
  const std::vector<std::string> chain = processor_arch_chain();
  ASSERT_FALSE(chain.empty());
  EXPECT_EQ(chain.back(), "generic");
  EXPECT_EQ((std::set<std::string>{chain.begin(), chain.end()}).size(), chain.size());
}

TEST(processor, that_runs_avx512_runs_avx2_next) {
  const std::vector<std::string> chain = processor_arch_chain();
  const auto widest = std::ranges::find(chain, "avx512");
  if (widest == chain.end()) GTEST_SKIP() << "this processor has no AVX-512";
  EXPECT_EQ(widest, chain.begin());
  EXPECT_EQ(chain[1], "avx2");
}

TEST(processor, has_a_name_of_one_line_and_a_thread) {
  EXPECT_FALSE(processor_model().empty());
  EXPECT_EQ(processor_model().find('\n'), std::string::npos);
  EXPECT_GE(processor_threads(), 1);
}

TEST(cpu_traits, say_what_the_processor_is) {
  const auto device = open_cpu(3);
  const device_traits& traits = device->traits();
  EXPECT_EQ(traits.name, "cpu");
  EXPECT_EQ(traits.bodies, device_kind::cpu);
  EXPECT_EQ(traits.model, processor_model());
  EXPECT_EQ(traits.arch_chain, processor_arch_chain());
  EXPECT_EQ(traits.threads, 3);
}

TEST(cpu_traits, have_all_threads_of_the_process_unless_some_are_asked_for) {
  EXPECT_EQ(open_cpu()->traits().threads, processor_threads());
  EXPECT_EQ(open_cpu(0)->traits().threads, processor_threads());
  EXPECT_EQ(open_cpu(-4)->traits().threads, processor_threads());
}

TEST(cpu_memory, is_what_the_machine_has) {
  const memory_figures figures = open_cpu(1)->memory(std::source_location::current());
  EXPECT_GT(figures.total, 0U);
  EXPECT_GT(figures.free, 0U);
  EXPECT_LE(figures.free, figures.total);
}

}  // namespace
}  // namespace reprise::sim
