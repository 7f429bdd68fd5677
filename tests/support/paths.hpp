// Where tests find their data: the source tree, or the folder that was carried to another machine.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace reprise::test {

inline std::filesystem::path source_dir() {
  if (const char* carried = std::getenv("REPRISE_SOURCE_DIR")) return carried;
  return REPRISE_SOURCE_DIR;
}

inline std::filesystem::path tiny_llama() {
  return source_dir() / "models" / "tiny-llama";
}

inline std::filesystem::path shipped_denoiser() {
  return source_dir() / "models" / "denoiser";
}

inline std::filesystem::path shipped_text() {
  return source_dir() / "workloads" / "memory" / "genesis.txt";
}

}  // namespace reprise::test
