// Images, their masks and their order; data that are none are one line that says what to do.
#include "workloads/train/data.hpp"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <set>
#include <string>

#include "tests/support/observe.hpp"
#include "tests/support/paths.hpp"
#include "tests/train_workload/support.hpp"

namespace reprise {
namespace {

using train::image_batch;
using train::image_set;
using train::read_images;

namespace fs = std::filesystem;

std::string refused(const fs::path& folder, std::int64_t most = 0) {
  const std::string told =
      test::message_of<usage_error>([&] { read_images(folder, "train", most); });
  EXPECT_EQ(std::ranges::count(told, '\n'), 0) << told;
  return told;
}

void write(const fs::path& file, const std::string& bytes) {
  std::ofstream{file, std::ios::binary} << bytes;
}

std::string header(char type_of, const std::vector<int>& shape) {
  std::string bytes{'\0', '\0', type_of, static_cast<char>(shape.size())};
  for (const int extent : shape) {
    bytes += {'\0', '\0', static_cast<char>(extent >> 8), static_cast<char>(extent)};
  }
  return bytes;
}

// Two images, written plainly.
void write_two(const fs::path& folder, int labels, char last_label, int side = 28) {
  write(folder / "train-images-idx3-ubyte",
        header(8, {2, side, side}) + std::string(static_cast<std::size_t>(2 * side * side), '\7'));
  write(folder / "train-labels-idx1-ubyte",
        header(8, {labels}) + std::string(static_cast<std::size_t>(labels - 1), '\1') + last_label);
}

TEST(images, of_a_folder_are_read_packed_or_plain) {
  const image_set all = read_images(test::clothes(), "train");
  EXPECT_EQ(all.count(), 512);
  EXPECT_EQ(all.pixels.size(), 512U * 784U);
  EXPECT_EQ(all.labels[0], 9) << "the first of the training images is an ankle boot";
  EXPECT_EQ(read_images(test::clothes(), "t10k").count(), 128);

  const test::scratch scratch;
  write_two(scratch.path(), 2, '\11');
  const image_set two = read_images(scratch.path(), "train");
  EXPECT_EQ(two.labels, (std::vector<std::uint8_t>{1, 9}));
  EXPECT_EQ(two.pixels, std::vector<std::uint8_t>(2 * 784, 7));
}

TEST(images, are_the_first_of_the_folder_where_fewer_are_asked_for) {
  const image_set all = read_images(test::clothes(), "train");
  const image_set some = read_images(test::clothes(), "train", 3);
  ASSERT_EQ(some.count(), 3);
  EXPECT_TRUE(std::equal(some.pixels.begin(), some.pixels.end(), all.pixels.begin()));
  EXPECT_EQ(some.pixels.size(), 3U * 784U);
}

TEST(images, that_are_none_are_refused_in_a_line_that_says_what_to_do) {
  EXPECT_TRUE(test::has(refused("/nowhere"), "dataset-fashion-mnist"));
  EXPECT_TRUE(test::has(refused("/nowhere"),
                        "\"/nowhere\": there is no "
                        "train-images-idx3-ubyte.gz"));
  EXPECT_TRUE(test::has(refused(test::clothes(), 513), "512 images, and 513 are asked for"));

  const test::scratch scratch;
  write_two(scratch.path(), 3, '\1');
  EXPECT_TRUE(test::has(refused(scratch.path()), "with a label each"));
  write_two(scratch.path(), 2, '\12');
  EXPECT_TRUE(test::has(refused(scratch.path()), "none of the ten classes"));
  write_two(scratch.path(), 2, '\1', 27);
  EXPECT_TRUE(test::has(refused(scratch.path()), "28 x 28"));
  write(scratch.path() / "train-images-idx3-ubyte.gz", "no idx");
  EXPECT_TRUE(test::has(refused(scratch.path()), "train-images-idx3-ubyte.gz"));
  fs::remove(scratch.path() / "train-images-idx3-ubyte.gz");
  fs::remove(scratch.path() / "train-labels-idx1-ubyte");
  EXPECT_TRUE(test::has(refused(scratch.path()), "no train-labels-idx1-ubyte.gz"));
}

TEST(a_batch, has_pixels_masks_and_labels_of_the_images_that_are_asked_for) {
  const image_set all = read_images(test::clothes(), "train", 4);
  const std::vector<std::uint32_t> which{3, 1};
  const image_batch made = batch_of(all, which, true);
  EXPECT_EQ(made.rows, 2);
  EXPECT_EQ(made.labels, (std::vector<std::int32_t>{all.labels[3], all.labels[1]}));
  int foreground = 0;
  for (std::size_t i = 0; i < 784; ++i) {
    const int byte = all.pixels[784 + i];
    ASSERT_EQ(made.pixels[784 + i], static_cast<float>(byte) / 255.0F);
    ASSERT_EQ(made.masks[784 + i], byte >= 32 ? 1.0F : 0.0F);
    foreground += byte >= 32 ? 1 : 0;
  }
  EXPECT_GT(foreground, 100);
  EXPECT_LT(foreground, 684);
  EXPECT_TRUE(batch_of(all, which, false).labels.empty());
}

TEST(an_order, has_each_image_once_and_is_that_of_its_seed_and_epoch) {
  const std::vector<std::uint32_t> order = train::order_of(1000, 3, 1);
  EXPECT_EQ(std::set<std::uint32_t>(order.begin(), order.end()).size(), 1000U);
  EXPECT_EQ(*std::ranges::max_element(order), 999U);
  EXPECT_EQ(train::order_of(1000, 3, 1), order);
  EXPECT_NE(train::order_of(1000, 3, 2), order);
  EXPECT_NE(train::order_of(1000, 4, 1), order);
  const double sum = std::accumulate(order.begin(), order.begin() + 500, 0.0);
  EXPECT_NEAR(sum / 500, 499.5, 45) << "the first half is drawn from all of them";
}

}  // namespace
}  // namespace reprise
