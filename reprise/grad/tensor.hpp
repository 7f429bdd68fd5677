// Device tensors that calls hand out, and the operands that calls take.
//
// A `tensor` owns its memory together with its copies, and carries a version: whoever changes it in
// place says so, and a backward that saved it refuses what has changed. Thread safe but for the
// elements themselves, which are in the order of the stream that wrote them. It is freed behind the
// calls of ops that it was given to, on whatever stream; who reads it on another stream by other
// means orders that one in front before the last copy goes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "reprise/device/memory.hpp"
#include "reprise/replay/lease.hpp"
#include "reprise/replay/signature.hpp"

namespace reprise {

// Behind the handles: memory of its own, memory of the caller's, or an output of a recording that
// is moved to memory of its own before it is overwritten.
struct held_tensor {
  tensor_ref at;
  block memory;                         // empty: somebody else's
  std::function<tensor_ref()> where{};  // of a lease; else empty
  version_counter::count version{1};
  std::optional<stream_ref> made_on{};  // where `memory` goes back

  held_tensor() = default;
  // Behind the streams that have read it.
  ~held_tensor();
  held_tensor(const held_tensor&) = delete;
  held_tensor& operator=(const held_tensor&) = delete;

  tensor_ref now() const { return where ? where() : at; }
  // A call reads it on this stream.
  void read_on(stream_ref stream);

 private:
  std::mutex guard_;
  std::set<stream_id> readers_;  // other streams than where it was made
};

// Memory of its own for a tensor of this type and shape, in the order of the stream. Its contents
// are undefined.
std::shared_ptr<held_tensor> hold_memory(pool& from, dtype type, const dims& shape,
                                         stream_ref stream, std::source_location place);

// Throws usage_error: an empty tensor has no elements.
[[noreturn]] void refuse_empty_tensor();

template <element T>
class tensor {
 public:
  tensor() = default;
  explicit tensor(std::shared_ptr<held_tensor> held) : held_{std::move(held)} {}

  // Device memory in the order of the stream of the call that made it; moves only where
  // graphed_options::gradients says so, and then at the next backward of that op.
  // Throws usage_error when it is empty.
  view<T> get() const {
    if (held_ == nullptr) refuse_empty_tensor();
    return elements_of<T>(held_->now());
  }
  operator view<const T>() const { return get(); }
  dims shape() const {
    if (held_ == nullptr) refuse_empty_tensor();
    return held_->at.shape;
  }
  std::size_t size() const { return shape().count(); }
  explicit operator bool() const noexcept { return held_ != nullptr; }

  // Its elements were changed in place. A backward that saved it before is an error from now on.
  void changed() noexcept { ++held_->version; }
  std::uint64_t version() const noexcept { return held_->version; }

  const std::shared_ptr<held_tensor>& held() const { return held_; }

 private:
  std::shared_ptr<held_tensor> held_;
};

// A tensor of these elements, with memory from the pool, in the order of the stream. Its contents
// are undefined.
template <element T>
tensor<T> make_tensor(pool& from, const dims& shape, stream_ref stream,
                      std::source_location place = std::source_location::current()) {
  return tensor<T>{hold_memory(from, dtype_of<T>, shape, stream, place)};
}

// One input of a call. What is bound by a plain view is the caller's to keep, unchanged, until the
// backward; a tensor is kept by the call, and its version is looked at; so is the version of a view
// where one is given. Host memory is copied by the call.
struct operand {
  operand(const binding& b) : bound{b} {}
  template <element T>
  operand(const input<T>& in, const tensor<T>& from)
      : bound{in(from.get(), from.shape())},
        version{from.held(), &from.held()->version},
        held{from.held()} {}
  template <element T>
  operand(const input<T>& in, view<const T> from, const version_counter& stamped)
      : bound{in(from)}, version{stamped.shared()} {}

  // What is bound, where it lies by now.
  binding now() const {
    binding b = bound;
    if (held) b.to.data = held->now().data;
    return b;
  }

  binding bound;
  std::shared_ptr<const version_counter::count> version{};  // null: not looked at
  std::shared_ptr<held_tensor> held{};                      // null: the caller keeps it
};

// The operands of one call, borrowed for its duration.
class operands : public std::span<const operand> {
 public:
  operands() = default;
  operands(std::initializer_list<operand> list) : span{list.begin(), list.size()} {}
  operands(std::span<const operand> list) : span{list} {}
  operands(const std::vector<operand>& list) : span{list} {}
};

// The cotangent of one output, for a backward. It may be reused when the call returns.
template <element T>
operand gradient_of(const output<T>& out, view<const T> cotangent) {
  return operand{out.into(view<T>{const_cast<T*>(address_of(cotangent.data())), cotangent.size()})};
}
template <element T>
operand gradient_of(const output<T>& out, const tensor<T>& cotangent) {
  operand given = gradient_of<T>(out, view<const T>{cotangent.get()});
  given.held = cotangent.held();
  return given;
}

}  // namespace reprise
