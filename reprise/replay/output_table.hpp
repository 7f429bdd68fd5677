// Where the outputs of one recording (or of the eager runs of one cache) lie, which run wrote them
// last, and who still holds them. Made by those who run steps; users see leases.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reprise/base/ids.hpp"
#include "reprise/device/memory.hpp"
#include "reprise/replay/outcome.hpp"
#include "reprise/replay/signature.hpp"

namespace reprise {

// Increasing in the process.
replay_id next_replay();

// A hold on one output of one run, shared by the copies of a lease.
struct output_hold {
  output_hold(replay_id of, std::size_t output, std::string who)
      : run{of}, slot{output}, label{std::move(who)} {}
  // Gives `aside` back behind all that have read it.
  ~output_hold();
  output_hold(const output_hold&) = delete;
  output_hold& operator=(const output_hold&) = delete;

  replay_id run;
  std::size_t slot;
  std::string label;
  std::optional<block> aside;  // where the output went when its place was overwritten
  tensor_ref at;               // of `aside`
  std::optional<stream_ref> copied_on;
  std::set<stream_id> readers;  // of `aside`, other streams than that
};

class output_table {
 public:
  // Whose outputs these are from now on.
  void belongs_to(const signature& declared);

  // A run begins on `stream`: leases on the one before are void from here on, ahead of the first
  // byte that it writes, but for what make_way has moved aside.
  replay_id begin(stream_ref stream);
  void set(std::vector<tensor_ref> outputs) { outputs_ = std::move(outputs); }
  // The memory goes when the stream of the last run (none: it is gone) has passed what is enqueued
  // there now: what is held and has to be kept is copied aside, and readers come before.
  void end(device_ref device, const std::optional<stream_ref>& last,
           std::source_location place) noexcept;

  // Why no run may overwrite the outputs now; null: it may.
  std::shared_ptr<const reason> refusal() const;
  // Ahead of begin: copies aside what is held and has to be kept, and orders the stream behind
  // those that leases were used on. Eager runs, which cannot be refused, move those outputs too.
  void make_way(site at, bool moves_refused = false);
  // Whether that would copy anything aside.
  bool has_to_move() const;

  std::span<const tensor_ref> outputs() const { return outputs_; }
  replay_id current() const { return current_; }
  const std::string& step() const { return step_; }

  // For leases. `hold` is null where the next run just revokes.
  std::shared_ptr<output_hold> hold(replay_id run, std::size_t slot, std::string label);
  bool has(replay_id run, const output_hold* held) const noexcept;
  const tensor_ref& leased(replay_id run, std::size_t slot, const output_hold* held) const;
  void order(output_hold* held, stream_ref stream, std::source_location place);

 private:
  struct known_output {
    std::string name;
    on_overwrite policy;
  };

  void move_aside(site at, output_hold& held);

  std::string step_;
  signature_id of_ = signature_id::none;
  std::vector<known_output> known_;      // by slot
  std::vector<tensor_ref> outputs_;      // likewise
  replay_id current_ = replay_id::none;  // none: the memory is gone
  stream_id last_ = stream_id::none;     // the current run's
  std::set<stream_id> readers_;          // that leases on the current run were used on
  std::vector<std::weak_ptr<output_hold>> holds_;
  std::optional<pool> aside_;
};

}  // namespace reprise
