// Results of a run, and leases on its outputs.
//
// Outputs lie in memory that the next run of the same recording (or the next eager run of the same
// cache) overwrites. A lease knows which run it belongs to: reading a stale one throws, naming the
// run that overwrote it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reprise/base/ids.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/device/memory.hpp"
#include "reprise/replay/outcome.hpp"
#include "reprise/replay/signature.hpp"

namespace reprise {

// The outputs of whoever runs next in one place. Shared by leases; written by one thread.
struct output_table {
  std::string step;
  signature_id of = signature_id::none;
  std::vector<tensor_ref> outputs;
  replay_id current = replay_id::none;  // none: the memory is gone
};

replay_id next_replay();

namespace detail {

const tensor_ref& leased(const output_table& table, replay_id run, std::size_t slot);

}  // namespace detail

template <element T>
class lease {
 public:
  lease(std::shared_ptr<const output_table> table, replay_id run, int slot)
      : table_{std::move(table)}, run_{run}, slot_{static_cast<std::size_t>(slot)} {}

  bool valid() const noexcept { return table_->current == run_; }
  // Device memory, in the order of the stream of the run. Throws stale_error once overwritten.
  view<const T> get() const { return elements_of<const T>(detail::leased(*table_, run_, slot_)); }
  dims shape() const { return detail::leased(*table_, run_, slot_).shape; }

  // A copy that outlives the next run, in stream order.
  buffer<T> clone(stream_ref stream, pool& into) const {
    const view<const T> from = get();
    buffer<T> copied{into, from.size(), stream};
    copy(stream, read<T>{from}, write<T>{copied.all()});
    return copied;
  }

 private:
  std::shared_ptr<const output_table> table_;
  replay_id run_;
  std::size_t slot_;
};

struct step_result : outcome {
  std::shared_ptr<const output_table> table;

  // Throws usage_error when the output is of another step.
  template <element T>
  lease<T> operator[](const output<T>& out) const {
    check(out.of());
    return {table, replay, out.slot()};
  }

 private:
  void check(signature_id of) const;
};

}  // namespace reprise
