// The running statistics of a batch norm: a mean and a variance for each column, in device memory,
// which every forward in training moves towards those of its batch (ops/batch_norm.hpp).
//
// A value, which may be moved; its memory stays where it is, and outlives the layers that refer to
// it. One thread at a time; what is enqueued is in the order of the stream that is given, and
// forwards move the statistics in the order of theirs.
#pragma once

#include <cstdint>
#include <vector>

#include "reprise/device/memory.hpp"

namespace reprise::nn {

// The statistics outside of the device, [width] each.
struct stored_stats {
  std::vector<float> means;
  std::vector<float> variances;
};

class running_stats {
 public:
  // Means of zero and variances of one. Throws usage_error, and takes no memory, when there is no
  // column.
  running_stats(pool& memory, std::int64_t width, stream_ref stream);

  std::int64_t width() const { return width_; }
  // [2, width]: the means, then the variances.
  view<float> all() const { return memory_; }
  view<float> means() const { return all().subview(0, columns()); }
  view<float> variances() const { return all().subview(columns(), columns()); }

  // As they are in stream order; waits for the stream.
  stored_stats to_host(stream_ref stream) const;
  // Puts them back. Throws usage_error, and changes nothing, when they are of another width.
  void from_host(stream_ref stream, const stored_stats& stored);

 private:
  std::size_t columns() const { return static_cast<std::size_t>(width_); }

  std::int64_t width_;
  buffer<float> memory_;
};

}  // namespace reprise::nn
