// The precision in force on a thread: how matrix products treat their operands, and to which type
// layers cast what they read. Both are part of what a recording is right under.
//
// A forward keeps the casts it ran with for its backward; the backward takes the products that are
// in force when it is called, as eager training does. Set by scopes, one thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include "reprise/base/matrix_precision.hpp"

namespace reprise {

class signature;  // replay/signature.hpp

// `bf16`: layers round the operands of their products to bf16 first, anew in every run.
enum class cast_mode : std::int32_t { none, bf16 };

struct precision {
  matrix_precision products = matrix_precision::full;
  cast_mode casts = cast_mode::none;

  bool operator==(const precision&) const = default;
};

// "tf32 products, bf16 casts".
std::string text_of(const precision& p);

// Of this thread.
precision precision_now() noexcept;

// Makes the precision in force a part of a step's key.
void key_by_precision(signature& sig);

// In force until the scope ends, also when it ends by an exception. Nests.
class precision_scope {
 public:
  explicit precision_scope(const precision& p) noexcept;
  ~precision_scope();
  precision_scope(const precision_scope&) = delete;
  precision_scope& operator=(const precision_scope&) = delete;

 private:
  precision before_;
};

}  // namespace reprise
