// The example that watches a CUDA graph of somebody else, on a card.
#include <gtest/gtest.h>

#include "reprise/platform/platform.hpp"

int watch_foreign_graph();  // main of examples/watch_foreign_graph.cu

namespace reprise {
namespace {

TEST(example, hears_what_a_foreign_cuda_graph_computes_and_changes_nothing) {
  if (!automatic_device().starts_with("cuda")) GTEST_SKIP() << "no GPU answers";
  EXPECT_EQ(watch_foreign_graph(), 0);
}

}  // namespace
}  // namespace reprise
