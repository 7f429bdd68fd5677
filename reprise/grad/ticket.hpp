// The ticket of one forward: which forward it was, and what its backward needs.
//
// Copyable; copies are the same forward. When the last copy goes, nothing is owed any more, and the
// frame is free. It keeps the tensors of the call, and what it needs of the op, alive.
#pragma once

#include <cstdint>
#include <memory>

namespace reprise {

struct forward_call;  // forward_call.hpp

// Increasing in the process; none: the forward ran eagerly, and its backward runs it again.
enum class ticket_id : std::uint64_t { none };

class forward_ticket {
 public:
  forward_ticket() = default;
  explicit forward_ticket(std::shared_ptr<forward_call> call) : call_{std::move(call)} {}

  ticket_id id() const noexcept;
  explicit operator bool() const noexcept { return call_ != nullptr; }
  const std::shared_ptr<forward_call>& call() const { return call_; }

 private:
  std::shared_ptr<forward_call> call_;
};

}  // namespace reprise
