// Memory that the op of a loss term keeps between calls: it grows where a call needs more, and
// never shrinks.
//
//   struct own_loss {
//     loss_workspace& kept;
//     own_loss(loss_workspace& memory) : kept{memory} {
//       declared.fact("workspace", kept.version());           // names it
//     }
//     void forward(forward_scope& run) const { … kept.room<float>(run, count) … }
//   };
//   loss_term{"own", {own_loss{memory}, …}, 1, &memory}
//
// What a run needs for itself alone is run.scratch. Recordings keep its address, so when it grows
// it is another version: graphed_loss drops its recording, and records again at the next call.
// It grows in eager runs only. One thread at a time; work in the order of the runs.
#pragma once

#include <cstddef>

#include "reprise/device/memory.hpp"
#include "reprise/replay/signature.hpp"

namespace reprise {

class loss_workspace {
 public:
  // The pool outlives it.
  explicit loss_workspace(pool& from) : pool_{from} {}
  loss_workspace(const loss_workspace&) = delete;
  loss_workspace& operator=(const loss_workspace&) = delete;

  // Memory for so many elements, the same until it grows; its contents are undefined. Throws
  // usage_error where it would have to grow in a body that is being recorded.
  template <element T>
  view<T> room(site at, std::size_t count) {
    return {reinterpret_cast<T*>(bytes_for(at, count * sizeof(T))), count};
  }

  // Moves when it grows.
  const version_counter& version() const { return version_; }
  std::size_t bytes() const { return held_.bytes(); }
  // All of it, as a step declares it.
  tensor_ref all() const;

 private:
  std::byte* bytes_for(site at, std::size_t bytes);

  pool& pool_;
  block held_;
  version_counter version_;
};

}  // namespace reprise
