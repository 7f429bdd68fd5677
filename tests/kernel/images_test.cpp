// Images: which views share one, and where a byte of a view is found again.
#include "reprise/kernel/images.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace reprise {
namespace {

TEST(images, of_views_that_overlap_are_one_and_neighbours_stay_apart) {
  std::vector<std::byte> memory(100);
  image_map map;
  map.add(memory.data() + 60, 10);
  map.add(memory.data(), 20);
  map.add(memory.data() + 20, 10);  // a neighbour
  map.add(memory.data() + 65, 10);
  map.add(memory.data() + 58, 4);
  map.add(memory.data() + 90, 0);
  ASSERT_EQ(map.images().size(), 3U);
  EXPECT_EQ(map.images()[0].begin, memory.data());
  EXPECT_EQ(map.images()[0].bytes, 20U);
  EXPECT_EQ(map.images()[1].bytes, 10U);
  EXPECT_EQ(map.images()[2].begin, memory.data() + 58);
  EXPECT_EQ(map.images()[2].bytes, 17U);
}

TEST(images, move_the_views_of_arguments_and_leave_scalars) {
  std::vector<float> here(8);
  std::vector<float> there(8);
  image_map map;
  map.add(here.data(), 8 * sizeof(float));
  map.images()[0].copy = reinterpret_cast<std::byte*>(there.data());
  const view<float> whole{here.data(), 8};
  EXPECT_EQ(moved(inout<float>{whole.subview(2, 3)}, map).data(), there.data() + 2);
  EXPECT_EQ(moved(read<float>{whole.subview(2, 3)}, map).size(), 3U);
  EXPECT_EQ(moved(write<float>{whole}, map).data(), there.data());
  EXPECT_EQ(moved(7, map), 7);
}

TEST(images, have_no_copy_of_what_nobody_added) {
  std::vector<std::byte> memory(10);
  image_map map;
  map.add(memory.data() + 2, 4);
  map.images()[0].copy = memory.data();
  EXPECT_EQ(map.copy_of(memory.data() + 1), nullptr);
  EXPECT_EQ(map.copy_of(memory.data() + 5), memory.data() + 3);
  EXPECT_EQ(map.copy_of(memory.data() + 6), nullptr);
}

}  // namespace
}  // namespace reprise
