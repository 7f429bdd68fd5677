// A model of a few thousand weights and a few real images, so that the tests of this workload run
// in no time on every device.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "tests/support/devices.hpp"
#include "tests/support/paths.hpp"
#include "workloads/train/train.hpp"

namespace reprise::test {

// The sample of Fashion-MNIST: 512 images to train on, 128 to validate with.
inline std::filesystem::path clothes() {
  return source_dir() / "tests" / "data" / "fashion-mnist";
}

// A folder of the test's own, gone with it.
class scratch {
 public:
  scratch() {
    std::string pattern = testing::TempDir() + "reprise-train-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// 50 images to train on, 12 to validate with.
inline const train::image_sets& few_clothes() {
  static const train::image_sets all{train::read_images(clothes(), "train", 50),
                                     train::read_images(clothes(), "t10k", 12)};
  return all;
}

// Windows of three and a last one of one micro-batch, which is short.
inline train::train_options small_options() {
  train::train_options o;
  o.data = clothes();
  o.epochs = 2;
  o.batch = 8;
  o.accumulate = 3;
  o.subset = 50;
  o.hidden = 12;
  o.width = 8;
  o.mask_hidden = 4;
  o.dropout = 0.25F;
  o.ema = 0.5F;
  o.seed = 5;
  o.verify = true;
  return o;
}

inline std::vector<train::epoch> epochs_of(const train::train_options& o) {
  return std::vector<train::epoch>(static_cast<std::size_t>(o.epochs),
                                   train::epoch_of(o, few_clothes().train.count()));
}

inline train::train_report run_small(device_ref on, const train::train_options& o,
                                     const train::window_listener& listen = {}) {
  return train::run_train(on, o, few_clothes(), epochs_of(o), listen);
}

inline std::string told(const train::train_options& o) {
  return text_of(o.graphed) + ", accumulate " + std::to_string(o.accumulate) +
         (o.casts == cast_mode::bf16 ? ", bf16" : ", fp32") + ", unlabelled every " +
         std::to_string(o.unlabelled_every) + ", loss scale " + text_of(o.scale);
}

// No bit differs from the plain run's and every counter is the planned one.
inline void expect_right(const train::train_report& report, std::size_t windows,
                         std::size_t epochs) {
  EXPECT_EQ(report.failure(), "");
  ASSERT_TRUE(report.compared.has_value());
  EXPECT_EQ(report.compared->windows, windows);
  EXPECT_EQ(report.compared->epochs, epochs);
}
inline void expect_right(const train::train_report& report, const train::train_options& o) {
  const std::vector<train::epoch> all = epochs_of(o);
  expect_right(report, all.size() * all.front().size(), all.size());
}

}  // namespace reprise::test
