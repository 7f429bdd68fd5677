// Records gathered into arrays, for tools that read those: one array for each point, rows below
// each other, in the order of request, token and step.
//
// As npy: one array, so the records have to be of one point. As safetensors: for each point its
// rows under its name ("resid_pre:5"), and beside them which request, token and step each row is of
// ("resid_pre:5.request", ".token", ".step"). Each shard of a tensor is a point of its own
// ("q:5@1of4"), and "q:5@1of4.shard_axis" is the axis that is split. Everything that is exported is
// in memory. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "reprise/records/recorded_point.hpp"

namespace reprise {

class record_export {
 public:
  // Throws usage_error where the rows of a point are not all of one element type, shape and axis.
  void add(const tap_record& record);

  std::size_t points() const noexcept { return points_.size(); }
  std::uint64_t rows() const noexcept;

  // Throw usage_error where there is nothing to write, where there is more than one point (npy),
  // and where the file cannot be written: it is there whole or not at all. bf16, for which npy has
  // no name, is widened to f32 there, exactly.
  void write_npy(const std::filesystem::path& file) const;
  void write_safetensors(const std::filesystem::path& file) const;

 private:
  struct placed_row {
    std::uint64_t request;
    std::int64_t token;
    std::uint64_t step;
    std::size_t at;  // in bytes
  };
  struct point {
    dtype type;
    int shard_axis;
    std::vector<std::int64_t> row_shape;
    std::size_t row_bytes;
    std::vector<placed_row> rows;
    std::vector<std::byte> bytes;

    std::vector<placed_row> in_order() const;
    std::vector<std::byte> bytes_of(const std::vector<placed_row>& order) const;
    std::vector<std::int64_t> shape() const;
  };

  std::map<recorded_point, point> points_;
};

}  // namespace reprise
