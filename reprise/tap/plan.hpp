// The plan of a step: which producers publish, how much, where, and whose rows they are. All of it
// comes from here, once, so that positions, metadata and the words that producers read agree.
//
// Points with equal rows share one layout: one row table on the device, one list of pieces on the
// host. A plan is used again for later steps and allocates nothing once it has been as large. One
// thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "reprise/base/dtype.hpp"
#include "reprise/device/tensor.hpp"
#include "reprise/replay/marks.hpp"
#include "reprise/tap/plan_words.hpp"
#include "reprise/tap/ring.hpp"
#include "reprise/tap/tap_spec.hpp"

namespace reprise {

// A point as one run of a body marks it.
struct tapped_point {
  std::uint64_t id = 0;  // of its monitor; 12 bits of each publication
  std::string_view kind;
  int layer = 0;
  shard_of shard{};
  row_mode rows = row_mode::none();
  dtype type = dtype::f32;
  std::int64_t source_rows = 0;
  std::int64_t width = 0;  // elements of a row
  std::uint64_t row_bytes = 0;
  bool enabled = true;  // in this step
};

// Rows that lie together in a payload and belong to one request.
struct row_piece {
  std::uint64_t request = no_request;
  std::int64_t first_token = 0;
  std::int64_t rows = 0;
  std::int64_t place = 0;
  std::int64_t source_row = 0;
};

struct planned_publication {
  std::size_t producer = 0;  // index among the points
  std::uint64_t sequence = 0;
  std::uint64_t position = 0;
  std::uint64_t bytes = 0;  // of rows: exactly, or at most
  std::uint64_t reserved = 0;
  bool exact = true;  // false: the device says how much of it
  std::size_t layout = 0;
};

class step_plan {
 public:
  // Room for so much, so that planning that much allocates nothing.
  void reserve(std::size_t points, std::size_t pieces);

  // Computes everything but positions. Throws usage_error, naming the point and the rows, where a
  // request has rows that a tensor does not have; then the plan is empty.
  void make(std::span<const tapped_point> points, std::span<const request_rows> requests,
            bool marked);
  // Where the account has promised it.
  void place(const ring_account& account);
  // The words of the recorded producers, `most_points` of them, and the row tables behind. Throws
  // usage_error where there are fewer words than that takes.
  void write(std::span<std::uint64_t> words, std::size_t most_points, const ring_account& account,
             std::uint64_t replay) const;
  // How many of them matter.
  std::size_t words(std::size_t most_points) const {
    return most_points * descriptor_words + table_words_;
  }

  std::uint64_t bytes() const { return bytes_; }  // that it reserves
  std::span<const planned_publication> publications() const { return publications_; }
  std::span<const row_piece> pieces_of(const planned_publication& one) const {
    const layout& of = layouts_[one.layout];
    return {pieces_.data() + of.first_piece, of.pieces};
  }
  bool marked() const { return marked_; }
  bool names(std::uint64_t request) const;

 private:
  struct layout {
    row_mode mode = row_mode::none();
    std::int64_t source_rows = 0;
    std::size_t first_piece = 0, pieces = 0;
    std::size_t first_run = 0, runs = 0;
    std::int64_t rows = 0;
    std::size_t table = 0;  // of one with many runs: behind the descriptors, in words
  };
  struct row_run {
    std::int64_t first = 0;
    std::int64_t rows = 0;
  };

  std::size_t layout_of(const tapped_point& one, std::span<const request_rows> requests);
  void add_pieces(const tapped_point& one, std::span<const request_rows> requests);
  void add_padding(std::size_t first, std::int64_t source_rows);
  void add_runs(layout& into);
  void write_table(const layout& of, std::span<std::uint64_t> to) const;

  std::vector<planned_publication> publications_;
  std::vector<layout> layouts_;
  std::vector<row_piece> pieces_;
  std::vector<row_run> runs_;
  std::uint64_t bytes_ = 0;
  std::size_t table_words_ = 0;
  bool marked_ = false;
};

}  // namespace reprise
