// Results of a run, and leases on its outputs.
//
// Outputs lie in memory that the next run of the same recording (or the next eager run of the same
// cache) overwrites. A lease knows which run it belongs to: reading a stale one throws, naming the
// run that overwrote it. What a run does to an output that is still held, its signature says
// (on_overwrite). The runs, results and leases of one cache belong to one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "reprise/base/ids.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/device/memory.hpp"
#include "reprise/replay/outcome.hpp"
#include "reprise/replay/output_table.hpp"
#include "reprise/replay/signature.hpp"

namespace reprise {

template <element T>
class lease {
 public:
  lease(std::shared_ptr<output_table> table, replay_id run, int slot, std::string label)
      : table_{std::move(table)}, run_{run}, slot_{static_cast<std::size_t>(slot)} {
    hold_ = table_->hold(run_, slot_, std::move(label));
  }

  bool valid() const noexcept { return table_->has(run_, hold_.get()); }
  // Device memory, in the order of the stream of the run, or of the run that moved it aside. Throws
  // stale_error once overwritten.
  view<const T> get() const { return elements_of<const T>(tensor()); }
  // The same for another stream: its work comes behind the run from here on, and the run that
  // overwrites the output comes behind what the stream has done by then.
  view<const T> on(stream_ref stream,
                   std::source_location place = std::source_location::current()) const {
    const view<const T> elements = get();
    table_->order(hold_.get(), stream, place);
    return elements;
  }
  dims shape() const { return tensor().shape; }

  // A copy that outlives the next run, in the order of `stream`, which comes behind the run.
  buffer<T> clone(stream_ref stream, pool& into) const {
    const view<const T> from = on(stream);
    buffer<T> copied{into, from.size(), stream};
    copy(stream, read<T>{from}, write<T>{copied.all()});
    return copied;
  }

 private:
  const tensor_ref& tensor() const { return table_->leased(run_, slot_, hold_.get()); }

  std::shared_ptr<output_table> table_;
  replay_id run_;
  std::size_t slot_;
  std::shared_ptr<output_hold> hold_;  // null: the next run just revokes it
};

struct step_result : outcome {
  std::shared_ptr<output_table> table;
  signature_id of = signature_id::none;

  // Throws usage_error when the output is of another step.
  template <element T>
  lease<T> operator[](const output<T>& out) const {
    return held(out, {});
  }
  // With a label that reasons name the holder by.
  template <element T>
  lease<T> held(const output<T>& out, std::string label) const {
    check(out.of());
    return {table, replay, out.slot(), std::move(label)};
  }

 private:
  void check(signature_id asked) const;
};

}  // namespace reprise
