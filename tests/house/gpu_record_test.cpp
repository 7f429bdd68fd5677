// docs/gpu.json tells what a GPU said of this very device code: it is green and not stale.
// Mended by `./run gpu-gate` on a machine with a GPU, or there by hand: HACKING.md says how.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace {

std::string first_word_printed_by(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> out{popen(command.c_str(), "r"), pclose};
  char word[128] = {};
  if (!out || std::fscanf(out.get(), "%127s", word) != 1) return {};
  return word;
}

nlohmann::json record() {
  std::ifstream file{REPRISE_SOURCE_DIR "/docs/gpu.json"};
  return nlohmann::json::parse(file);
}

TEST(gpu_record, is_of_this_device_code) {
  EXPECT_EQ(record().at("device_code"),
            first_word_printed_by("bash " REPRISE_SOURCE_DIR "/scripts/tree_hash.sh"))
      << "device code has changed since docs/gpu.json: run ./run gpu-gate again";
}

TEST(gpu_record, is_green) {
  EXPECT_EQ(record().at("green"), true);
}

}  // namespace
