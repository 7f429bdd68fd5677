// What the kernels of a chunk check before any work, on the host: that the sizes hold, and that
// each view has the elements that they ask for. Called by the bodies of every device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "reprise/device/view.hpp"
#include "reprise/sdm/number.hpp"
#include "reprise/sdm/saved_rows.hpp"
#include "reprise/sdm/sizes.hpp"

namespace reprise::REPRISE_BODIES::sdm {

struct needed_view {
  const char* name;
  std::size_t has;  // elements
  std::int64_t needs;
};

// Throws usage_error, naming the op and what does not fit; check_sizes is in it.
void need_views(const char* op, const sdm_sizes& sizes, std::int64_t n,
                std::initializer_list<needed_view> views);

// Sizes of arrays, in elements.
struct needed_sizes {
  std::int64_t bank, by_token, by_column, k_idx, q_idx, by_event, runs, matrices, products;

  explicit needed_sizes(const sdm_sizes& s)
      : bank{s.rows() * s.width},
        by_token{s.streams * s.tokens},
        by_column{by_token * s.width},
        k_idx{by_token * s.writes},
        q_idx{by_token * s.reads},
        by_event{s.streams * s.chunks() * s.events()},
        runs{by_event + s.streams * s.chunks()},
        matrices{s.streams * s.chunks() * s.chunk * s.chunk},
        products{by_event * parts_of(s.width)} {}
};

inline std::int64_t saved_bytes(saved_rows format, const sdm_sizes& s, std::int64_t stored) {
  return s.streams * s.chunks() * s.chunk * s.writes * row_bytes(format, s.width, stored);
}

template <class B, class X>
void check_recall(const sdm_sizes& sizes, std::int64_t n, const read<B>& bank,
                  const read<std::int32_t>& k_idx, const read<std::int32_t>& q_idx,
                  const read<X>& head, const read<X>& v, const write<X>& errors,
                  const write<X>& readings) {
  const needed_sizes need{sizes};
  need_views("sdm_recall", sizes, n,
             {{"the bank", bank.size(), need.bank},
              {"k_idx", k_idx.size(), need.k_idx},
              {"q_idx", q_idx.size(), need.q_idx},
              {"head", head.size(), need.by_event},
              {"v", v.size(), need.by_column},
              {"errors", errors.size(), need.by_column},
              {"readings", readings.size(), need.by_column}});
}

template <class X>
void check_solve(const sdm_sizes& sizes, std::int64_t n, const read<X>& inverse,
                 const read<X>& pairs, const read<X>& beta, const inout<X>& errors,
                 const inout<X>& readings) {
  const needed_sizes need{sizes};
  need_views("sdm_solve", sizes, n,
             {{"inverse", inverse.size(), need.matrices},
              {"pairs", pairs.size(), need.matrices},
              {"beta", beta.size(), need.by_token},
              {"errors", errors.size(), need.by_column},
              {"readings", readings.size(), need.by_column}});
}

template <class B, class X>
void check_write(const sdm_sizes& sizes, std::int64_t n, const read<std::int32_t>& order,
                 const read<std::int32_t>& runs, const read<std::int32_t>& rows,
                 const read<std::int32_t>& written, const read<X>& tail, const read<X>& keep,
                 const read<X>& beta, const read<X>& errors, const inout<B>& bank,
                 const write<std::uint8_t>& saved, saved_rows format) {
  const needed_sizes need{sizes};
  need_views(
      "sdm_write", sizes, n,
      {{"order", order.size(), need.by_event},
       {"runs", runs.size(), need.runs},
       {"rows", rows.size(), need.by_event},
       {"written", written.size(), need.by_event},
       {"tail", tail.size(), need.by_event},
       {"keep", keep.size(), need.by_event},
       {"beta", beta.size(), need.by_token},
       {"errors", errors.size(), need.by_column},
       {"the bank", bank.size(), need.bank},
       {"saved", saved.size(),
        saved.size() == 0 ? 0 : saved_bytes(format, sizes, static_cast<std::int64_t>(sizeof(B)))}});
}

template <class G, class X>
void check_gather(const sdm_sizes& sizes, std::int64_t n, const read<G>& cotangent,
                  const read<std::int32_t>& k_idx, const read<X>& tail, const write<X>& m) {
  const needed_sizes need{sizes};
  need_views("sdm_gather", sizes, n,
             {{"the cotangent", cotangent.size(), need.bank},
              {"k_idx", k_idx.size(), need.k_idx},
              {"tail", tail.size(), need.by_event},
              {"m", m.size(), need.by_column}});
}

template <class X>
void check_solve_back(const sdm_sizes& sizes, std::int64_t n, const read<X>& inverse,
                      const read<X>& pairs, const read<X>& dy, const inout<X>& m) {
  const needed_sizes need{sizes};
  need_views("sdm_solve_back", sizes, n,
             {{"inverse", inverse.size(), need.matrices},
              {"pairs", pairs.size(), need.matrices},
              {"dy", dy.size(), need.by_column},
              {"m", m.size(), need.by_column}});
}

template <class B, class G, class X>
void check_rewind(const sdm_sizes& sizes, std::int64_t n, const read<std::int32_t>& order,
                  const read<std::int32_t>& runs, const read<std::int32_t>& rows,
                  const read<std::int32_t>& written, const read<X>& head, const read<X>& keep,
                  const read<X>& beta, const read<X>& dy, const read<X>& m, const read<X>& errors,
                  const read<std::uint8_t>& saved, const inout<B>& bank, const inout<G>& cotangent,
                  const write<X>& of_state, const write<X>& of_cotangent, const write<X>& of_both,
                  saved_rows format) {
  const needed_sizes need{sizes};
  need_views(
      "sdm_rewind", sizes, n,
      {{"order", order.size(), need.by_event},
       {"runs", runs.size(), need.runs},
       {"rows", rows.size(), need.by_event},
       {"written", written.size(), need.by_event},
       {"head", head.size(), need.by_event},
       {"keep", keep.size(), need.by_event},
       {"beta", beta.size(), need.by_token},
       {"dy", dy.size(), need.by_column},
       {"m", m.size(), need.by_column},
       {"errors", errors.size(), need.by_column},
       {"saved", saved.size(), saved_bytes(format, sizes, static_cast<std::int64_t>(sizeof(B)))},
       {"the bank", bank.size(), need.bank},
       {"the cotangent", cotangent.size(), need.bank},
       {"of_state", of_state.size(), need.products},
       {"of_cotangent", of_cotangent.size(), need.products},
       {"of_both", of_both.size(), need.products}});
}

}  // namespace reprise::REPRISE_BODIES::sdm
