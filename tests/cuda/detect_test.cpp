// What is said of the GPUs here, and of their absence.
#include <gtest/gtest.h>

#include "reprise/base/error.hpp"
#include "reprise/cuda/device.hpp"

#if defined(REPRISE_HAS_CUDA)
#include "bodies.hpp"
#endif

namespace reprise {
namespace {

bool is_one_line(const std::string& text) {
  return !text.empty() && text.find('\n') == std::string::npos;
}

std::string refusal_of(int ordinal) {
  try {
    open_cuda(ordinal);
  } catch (const usage_error& refusal) {
    return refusal.what();
  }
  ADD_FAILURE() << "cuda:" << ordinal << " was opened, or threw something else";
  return {};
}

TEST(cuda_detection, says_why_exactly_when_there_is_no_card) {
  EXPECT_EQ(list_cuda_devices().empty(), !why_no_cuda().empty());
  if (!why_no_cuda().empty()) {
    EXPECT_TRUE(is_one_line(why_no_cuda())) << why_no_cuda();
  }
}

TEST(cuda_detection, answers_the_same_each_time) {
  EXPECT_EQ(list_cuda_devices().size(), list_cuda_devices().size());
  EXPECT_EQ(why_no_cuda(), why_no_cuda());
}

TEST(cuda_detection, knows_the_toolkit_of_the_build) {
#if defined(REPRISE_HAS_CUDA)
  EXPECT_NE(cuda_toolkit_version().find('.'), std::string::npos);
#else
  EXPECT_EQ(cuda_toolkit_version(), "");
#endif
}

TEST(cuda_detection, describes_each_card) {
  if (list_cuda_devices().empty()) GTEST_SKIP() << why_no_cuda();
  int ordinal = 0;
  for (const cuda_row& row : list_cuda_devices()) {
    EXPECT_EQ(row.name, "cuda:" + std::to_string(ordinal));
    EXPECT_EQ(row.ordinal, ordinal++);
    EXPECT_EQ(row.usable, row.why_not.empty());
    EXPECT_FALSE(row.model.empty());
    EXPECT_GE(row.driver_version, 12000);
    EXPECT_GE(row.compute_major, 5);
    EXPECT_GT(row.sm_count, 0);
    EXPECT_GT(row.memory_bytes, std::size_t{1} << 30);
    EXPECT_GT(row.l2_bytes, 0u);
    EXPECT_GE(row.shared_per_block_optin, std::size_t{48} << 10);
  }
}

TEST(an_absent_card, is_refused_in_one_line_that_names_what_to_open_instead) {
  for (const int ordinal : {0, 9}) {
    if (ordinal < static_cast<int>(list_cuda_devices().size())) continue;
    const std::string text = refusal_of(ordinal);
    EXPECT_TRUE(is_one_line(text));
    EXPECT_NE(text.find("cuda:" + std::to_string(ordinal)), std::string::npos) << text;
    EXPECT_NE(text.find("\"cpu\""), std::string::npos) << text;
    if (list_cuda_devices().empty()) {
      EXPECT_NE(text.find(why_no_cuda()), std::string::npos) << text;
    }
  }
}

TEST(an_absent_card, with_a_negative_number_is_refused_too) {
  EXPECT_TRUE(is_one_line(refusal_of(-1)));
}

#if defined(REPRISE_HAS_CUDA)

// In a child, because another test of this process may have opened the card.
TEST(cuda_detection_DeathTest, creates_no_context) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const auto rows = list_cuda_devices();
        const bool active = !rows.empty() && test::context_is_active(rows.front().ordinal);
        std::exit(active ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

#endif

}  // namespace
}  // namespace reprise
