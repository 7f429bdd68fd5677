// The sparse-delta-memory op as a differentiable op: each token decays and writes W rows of its
// stream's bank by the delta rule, then reads R rows. Equations: gated delta rule over a sparse
// memory, one token at a time,
//
//   u = beta (v - sum over w of k[w] a[w] M[k_idx[w]]),   a = e^g
//   M[k_idx[w]] = a[w] M[k_idx[w]] + k[w] u;   readings = sum over n of q_val[n] M[q_idx[n]]
//
// computed in chunks of tokens (passes.hpp): the chunk's size changes speed and roundings only, of
// numbers that are finite; an infinity or a NaN spreads over its chunk.
// Work and bytes of a token grow with (W + R) D, whatever S is; only making the initial banks and
// summing their gradients takes whole banks.
//
//   sparse_delta_memory<bf16> memory{{.sizes = {.streams = 2, .slots = 1024, .width = 256, .writes
//   = 8, .reads = 8}}, initial}; graphed_op op{memory, budget, {.conflict = recompute{}}};
//
// sizes.tokens is not read: T is that of the call. Indices are rows of all banks, ascending within
// a token (sizes.hpp). The initial bank is a parameter [S, D] of f32, copied for each stream in the
// type that banks are stored in, its gradient summed over the streams in f32; or the call's input
// `bank` [P * S, D]; or zeros.
//
// The backward rewinds the bank in place, from the rows that the forward saved; the runtime runs
// the forward again where a backward comes twice. A value, which may be copied; the parameter
// outlives it.
#pragma once

#include <string>

#include "reprise/grad/scopes.hpp"
#include "reprise/sdm/saved_rows.hpp"
#include "reprise/sdm/sizes.hpp"

namespace reprise {

struct sdm_options {
  sdm_sizes sizes;
  saved_rows rows = saved_rows::as_stored;
  // The cotangent of the bank is held in f32 while the bank is stored in bf16.
  bool wide_bank_grad = false;
};

// Declares what a recording of the op depends on beside its shapes: parts of its key.
void declare_keys(signature& in, const sdm_options& options, dtype storage);

// B: f32 or bf16.
template <element B>
class sparse_delta_memory {
  signature declared_;
  sdm_options options_;

 public:
  // Throws usage_error as check_sizes does, and when `initial` is no [S, D] of f32.
  explicit sparse_delta_memory(const sdm_options& options, const std::string& name = "sdm")
      : sparse_delta_memory{options, nullptr, name} {}
  sparse_delta_memory(const sdm_options& options, parameter& initial,
                      const std::string& name = "sdm")
      : sparse_delta_memory{options, &initial, name} {}

  const input<std::int32_t> k_idx;  // [P, T, W]
  const input<float> k_val;         // [P, T, W]
  const input<float> v;             // [P, T, D]
  const input<float> beta;          // [P, T, 1]
  const input<float> g;             // [P, T, 1] or [P, T, W]: log decay, at most 0
  const input<std::int32_t> q_idx;  // [P, T, R]
  const input<float> q_val;         // [P, T, R]
  const input<B> bank;              // [P * S, D], or left out
  const output<float> readings;     // [P, T, D]
  const output<B> final_bank;       // [P * S, D]: a returned state

  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;

 private:
  sparse_delta_memory(const sdm_options& options, parameter* initial, const std::string& name);
  template <class G>
  void backward_in(backward_scope& run) const;
  sdm_sizes sizes_of(const dims& v) const;

  parameter* initial_;  // null: zeros, or what a call brings
  bool trains_initial_;
};

}  // namespace reprise
