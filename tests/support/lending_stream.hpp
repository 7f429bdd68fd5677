// A stream that lends the workspace a kernel asks for, as a step's run does: for plain launches
// that a recorded call is held to.
#pragma once

#include <cstddef>
#include <span>

#include "reprise/device/memory.hpp"

namespace reprise::test {

class lending_stream {
 public:
  explicit lending_stream(stream_ref on) : stream_{on}, pool_{on.device()} {}
  operator stream_ref() const { return stream_; }
  workspace_ref workspace() const { return {&take, const_cast<lending_stream*>(this)}; }

 private:
  static std::span<std::byte> take(void* self, std::size_t bytes) {
    auto& lender = *static_cast<lending_stream*>(self);
    lender.lent_ = block{lender.pool_, bytes, lender.stream_};
    return {lender.lent_.data(), bytes};
  }

  stream_ref stream_;
  pool pool_;
  block lent_;
};

}  // namespace reprise::test
