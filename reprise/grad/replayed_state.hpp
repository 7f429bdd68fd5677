// A state that a call returns, such as the final bank of a memory op: an output that is copied only
// when somebody reads it.
//
// The first read copies it, in the order of the pool, and the state keeps that copy. A first read
// that comes too late (after a replay that may have written it, after the call's own backward, or
// after its frame was released) throws stale_error and says how to avoid it. An eager call returns
// a state of the same interface that has its copy already. Assigning and updating never read the
// old contents. A state carries no gradient: its cotangent is an argument of the backward
// (gradient_of). One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "reprise/grad/tensor.hpp"

namespace reprise {

// Where a state can be read from until its frame is written again.
class state_source {
 public:
  virtual ~state_source() = default;
  // Throws stale_error.
  virtual std::shared_ptr<held_tensor> read(site at) = 0;
};

template <element T>
class replayed_state {
 public:
  replayed_state() = default;
  explicit replayed_state(std::shared_ptr<state_source> from, std::int64_t length = 0)
      : from_{std::move(from)}, length_{length} {}
  explicit replayed_state(tensor<T> contents, std::int64_t length = 0)
      : copy_{std::move(contents)}, length_{length} {}

  // The contents; the first read copies them in the order of `at`.
  tensor<T> read(site at) {
    if (!copy_ && from_ != nullptr) copy_ = tensor<T>{from_->read(at)};
    from_ = nullptr;
    return copy_;
  }
  bool was_read() const { return static_cast<bool>(copy_); }

  // How much went into it, in the caller's unit (tokens).
  std::int64_t length() const { return length_; }

  // Other contents of this length.
  void assign(replayed_state other) { *this = std::move(other); }
  void assign(tensor<T> contents, std::int64_t length) {
    *this = replayed_state{std::move(contents), length};
  }
  // What a call made of it: the new contents, `added` longer.
  void update(replayed_state next, std::int64_t added) {
    const std::int64_t sum = length_ + added;
    *this = std::move(next);
    length_ = sum;
  }

 private:
  std::shared_ptr<state_source> from_;
  tensor<T> copy_;
  std::int64_t length_ = 0;
};

}  // namespace reprise
