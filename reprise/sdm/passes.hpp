// The forward and the backward of the sparse-delta-memory op as launches, for whoever has the
// memory: a differentiable op (op.hpp, layer.hpp), or a check of it (platform/check_sdm.hpp).
//
// What a forward leaves for its backward is a context. A backward rewinds the bank and so uses the
// context up: a second one is refused until the forward has run again. All launches are in the
// order of one stream.
//
// B: what banks are stored in: f32, bf16, or f64 on the CPU. G: what the cotangent of a bank is
// stored in: B, or f32 where B is bf16. X: what is computed in, f64 where B is, and else f32.
#pragma once

#include <cstdint>
#include <string_view>

#include "reprise/device/device.hpp"
#include "reprise/device/view.hpp"
#include "reprise/sdm/number.hpp"
#include "reprise/sdm/saved_rows.hpp"
#include "reprise/sdm/sizes.hpp"

namespace reprise {

// What a call reads beside the bank; in the shapes of sizes.hpp:
// k_idx, k_val [P, T, W], v [P, T, D], beta [P, T, 1], g [P, T, G], q_idx, q_val [P, T, R].
template <class X>
struct sdm_inputs {
  view<const std::int32_t> k_idx;
  view<const X> k_val;
  view<const X> v;
  view<const X> beta;
  view<const X> g;
  view<const std::int32_t> q_idx;
  view<const X> q_val;
};

// What a forward leaves: the bank behind the last token, the rows before each chunk, and how the
// tokens of a chunk act on one another (order.hpp, weights.hpp, pairs.hpp).
template <class B>
struct sdm_context {
  using X = sdm::arithmetic<B>;

  view<std::int32_t> order, place, run_of, runs, rows, written;
  view<double> level;
  view<X> head, tail, keep;
  view<X> recalls, readings;
  view<X> errors;            // [P, T, D]
  view<std::uint8_t> saved;  // [P, N, C * W] rows
  bool rewound = false;      // its backward has run
};

// What a forward, or a backward, needs while it runs.
template <class X>
struct sdm_forward_scratch {
  view<X> inverse;
};
template <class X>
struct sdm_backward_scratch {
  view<X> inverse, m;
  view<X> of_state, of_cotangent, of_both;
  view<X> of_readings, of_errors;
  view<X> dg_by_write;
};

// Gradients, each shaped as its input.
template <class X>
struct sdm_gradients {
  view<X> k_val, v, beta, g, q_val;
};

// Elements of each part, in the order of its struct.
struct sdm_counts {
  std::int64_t events;  // [P, N, E]
  std::int64_t runs;    // [P, N, E + 1]
  std::int64_t pairs;   // [P, N, C, C]
  std::int64_t values;  // [P, T, D]
  std::int64_t saved;   // bytes of [P, N, C * W] rows
  std::int64_t parts;   // [P, N, E, parts]
  std::int64_t writes;  // [P, T, W]
};
// Throws usage_error as check_sizes does.
sdm_counts counts_of(const sdm_sizes& sizes, saved_rows format, std::int64_t stored);

// make<T>(name, shape) gives memory for one part. The names are those that the forward saves under.
template <class B, class Make>
sdm_context<B> make_context(const sdm_sizes& sizes, saved_rows format, Make&& make) {
  using X = sdm::arithmetic<B>;
  const sdm_counts n = counts_of(sizes, format, sizeof(B));
  const auto of = [&]<class T>(std::string_view name, std::int64_t count) -> view<T> {
    return make.template operator()<T>(name, dims{count});
  };
  using i32 = std::int32_t;
  return {of.template operator()<i32>("order", n.events),
          of.template operator()<i32>("place", n.events),
          of.template operator()<i32>("run_of", n.events),
          of.template operator()<i32>("runs", n.runs),
          of.template operator()<i32>("rows", n.events),
          of.template operator()<i32>("written", n.events),
          of.template operator()<double>("level", n.events),
          of.template operator()<X>("head", n.events),
          of.template operator()<X>("tail", n.events),
          of.template operator()<X>("keep", n.events),
          of.template operator()<X>("recalls", n.pairs),
          of.template operator()<X>("pair readings", n.pairs),
          of.template operator()<X>("errors", n.values),
          of.template operator()<std::uint8_t>("saved rows", n.saved)};
}

// make<T>(shape) gives memory for one part.
template <class X, class Make>
sdm_forward_scratch<X> make_forward_scratch(const sdm_sizes& sizes, Make&& make) {
  return {make.template operator()<X>(dims{counts_of(sizes, {}, 1).pairs})};
}
template <class X, class Make>
sdm_backward_scratch<X> make_backward_scratch(const sdm_sizes& sizes, Make&& make) {
  const sdm_counts n = counts_of(sizes, {}, 1);
  const auto of = [&](std::int64_t count) { return make.template operator()<X>(dims{count}); };
  return {of(n.pairs), of(n.values), of(n.parts), of(n.parts),
          of(n.parts), of(n.pairs),  of(n.pairs), of(n.writes)};
}

// The readings [P, T, D] of a call whose banks lie in `bank` [P * S, D], which then holds those
// behind the last token. Throws usage_error as check_sizes does.
template <class B>
void sdm_forward(site at, const sdm_sizes& sizes, saved_rows format,
                 const sdm_inputs<sdm::arithmetic<B>>& in, sdm_context<B>& context, view<B> bank,
                 const sdm_forward_scratch<sdm::arithmetic<B>>& scratch,
                 view<sdm::arithmetic<B>> readings);

// The gradients of <dy, readings> + <cotangent, bank behind the last token>: `cotangent` [P * S, D]
// comes in as that of the final bank and goes out as that of the initial one. `bank` is rewound: to
// the bits that it had before the forward, where rows are saved as they are stored. Throws
// usage_error for a context that is used up.
template <class B, class G>
void sdm_backward(site at, const sdm_sizes& sizes, saved_rows format,
                  const sdm_inputs<sdm::arithmetic<B>>& in, sdm_context<B>& context, view<B> bank,
                  view<const sdm::arithmetic<B>> dy, view<G> cotangent,
                  const sdm_backward_scratch<sdm::arithmetic<B>>& scratch,
                  const sdm_gradients<sdm::arithmetic<B>>& to);

}  // namespace reprise
