// What the format tests share: files written byte by byte, so that they can lie; a folder to put
// them in; and the line that refuses them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "reprise/base/error.hpp"

namespace reprise::test {

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span{text});
}

// The eight bytes that open a safetensors file.
inline std::string length_prefix(std::uint64_t length) {
  std::string bytes;
  for (int at = 0; at < 8; ++at) bytes += static_cast<char>(length >> (8 * at) & 0xffu);
  return bytes;
}

// A safetensors file: the header as it is given, its true length before it, the data behind it.
inline std::string file_of(std::string_view header, std::string_view data = {}) {
  return length_prefix(header.size()).append(header).append(data);
}

// "NAME":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}
inline std::string entry(std::string_view name, std::string_view dtype, std::string_view shape,
                         std::string_view offsets) {
  std::string json = "\"";
  json.append(name).append(R"(":{"dtype":")").append(dtype).append(R"(","shape":)").append(shape);
  return json.append(R"(,"data_offsets":)").append(offsets).append("}");
}

// The message of what `call` throws where the machine and not the caller is at fault.
template <class Call>
std::string failure(Call&& call) {
  try {
    call();
  } catch (const usage_error& refused) {
    ADD_FAILURE() << "a usage error, though what was asked for was sound: " << refused.what();
  } catch (const error& failed) {
    return failed.what();
  }
  return {};
}

// The message of the usage_error that `call` throws; it must be one printable line. Anything else
// that happens fails the test.
template <class Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const usage_error& refused) {
    const std::string line = refused.what();
    EXPECT_TRUE(std::ranges::none_of(line, [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    })) << line;
    return line;
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

// A folder of this test's own, gone with it.
class scratch_folder {
 public:
  scratch_folder() {
    std::string pattern = testing::TempDir() + "reprise-formats-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  std::filesystem::path write(std::string_view name, std::string_view bytes) const {
    std::ofstream file{path_ / name, std::ios::binary};
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    EXPECT_TRUE(file.good());
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace reprise::test
