// A denoiser of a few hundred weights, written to a folder, so that the tests of this workload run
// in no time on every device; and running it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/devices.hpp"
#include "workloads/denoise/denoise.hpp"

namespace reprise::test {

inline nlohmann::json small_config() {
  return {{"architecture", "pixel_denoiser"},
          {"image_rows", 4},
          {"image_columns", 5},
          {"class_names", {"left", "right", "none of both"}},
          {"width", 16},
          {"inner_width", 24},
          {"condition_width", 8},
          {"time_width", 6},
          {"blocks", 2},
          {"norm_epsilon", 1e-5}};
}

// Name and shape of each tensor of that configuration.
inline std::vector<std::pair<std::string, std::vector<std::int64_t>>> small_tensors() {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> all;
  const auto layer = [&](const std::string& name, std::int64_t out, std::int64_t in) {
    all.push_back({name + ".weight", {out, in}});
    all.push_back({name + ".bias", {out}});
  };
  layer("input", 16, 20);
  layer("time.in", 8, 6);
  layer("time.out", 8, 8);
  all.push_back({"class.weight", {4, 8}});
  for (const std::string block : {"blocks.0.", "blocks.1."}) {
    all.push_back({block + "norm.weight", {16}});
    all.push_back({block + "norm.bias", {16}});
    layer(block + "up", 24, 16);
    all.push_back({block + "condition.weight", {24, 8}});
    layer(block + "down", 16, 24);
  }
  all.push_back({"norm.weight", {16}});
  all.push_back({"norm.bias", {16}});
  layer("output", 20, 16);
  return all;
}

inline void write_safetensors(
    const std::filesystem::path& file,
    const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& tensors) {
  nlohmann::json header = nlohmann::json::object();
  std::string data;
  std::mt19937 draw{7};
  for (const auto& [name, shape] : tensors) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    const std::size_t begin = data.size();
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = static_cast<float>(draw() >> 8) * 0x1p-24F - 0.5F;
      data.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  std::ofstream out{file, std::ios::binary};
  out.write(reinterpret_cast<const char*>(&length), sizeof length);
  out << text << data;
}

// A folder of the test's own with the small model in it, gone with it.
class small_model {
 public:
  small_model() {
    std::string pattern = testing::TempDir() + "reprise-denoiser-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    folder_ = pattern;
    write_config(small_config());
    write_safetensors(folder_ / "model.safetensors", small_tensors());
  }
  ~small_model() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  small_model(const small_model&) = delete;
  small_model& operator=(const small_model&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  void write_config(const nlohmann::json& config) const {
    std::ofstream{folder_ / "config.json"} << config;
  }

 private:
  std::filesystem::path folder_;
};

inline denoise::image_request asked(std::int64_t steps, std::vector<std::int32_t> classes,
                                    std::uint64_t seed = 1) {
  denoise::image_request request;
  request.steps = steps;
  request.classes = std::move(classes);
  request.seed = seed;
  return request;
}

using images_of_requests = std::vector<std::vector<float>>;

inline bool same_bits(const images_of_requests& a, const images_of_requests& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return false;
    if (std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) != 0) return false;
  }
  return true;
}

}  // namespace reprise::test
