// A value of the host that changes from step to step: a length, a learning rate, a position.
//
// A recording would keep what its body read once and repeat that for ever. So a body that reads
// such a value while it is recorded is refused by the value's name; the step runs eagerly, and says
// why. Eager runs and breaks read it as any other. What a recorded body needs is bound as an input.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "reprise/replay/recorded_body.hpp"

namespace reprise {

// Throws usage_error.
void refuse_per_step(std::string_view name);

// One thread at a time.
template <class T>
class per_step {
 public:
  per_step(std::string name, T value) : name_{std::move(name)}, value_{std::move(value)} {}

  void set(T value) { value_ = std::move(value); }
  const std::string& name() const { return name_; }

  // Throws usage_error inside a body that is being recorded.
  const T& get() const {
    if (recorded_body::is_here()) refuse_per_step(name_);
    return value_;
  }
  operator const T&() const { return get(); }

 private:
  std::string name_;
  T value_;
};

}  // namespace reprise
