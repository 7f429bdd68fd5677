// The call most users need: run this step; replay it if that is right, record it if that is new and
// admitted, and otherwise run it eagerly and say why.
//
// Recordings are found by their whole key, held under a byte budget, dropped by use, and dropped
// at once when what they depend on has changed. One thread at a time; caches may share a budget.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reprise/replay/budget.hpp"
#include "reprise/replay/cache_report.hpp"
#include "reprise/replay/eager.hpp"
#include "reprise/replay/kept_recordings.hpp"
#include "reprise/replay/key_history.hpp"
#include "reprise/replay/recorder.hpp"
#include "reprise/replay/verifier.hpp"

namespace reprise {

struct cache_options {
  bool record = true;    // false: every step runs eagerly; nothing of capture is ever called
  bool verify = false;   // run each replay eagerly as well and compare the bits
  bool debug = false;    // every recording is one break around the whole body: nothing is captured
  bool branches = true;  // what bodies enqueue aside (step_scope::aside) is a branch of the graph
  int admit_after = 1;   // the use of a key that records it
  bool prepared_only = false;  // record nothing but what was prepared
  int failure_limit = 4;       // captures of one key that may fail before it stays eager
  int churn_limit = 4;         // recordings of one key that may be dropped unpaid (key_history.hpp)
  // Eager runs in a row, because of a fact that says run_eagerly or of an observer, after which a
  // recording is dropped; 0: it is kept.
  int retire_after = 0;
  byte_budget* budget = nullptr;  // outlives the cache; null: one of its own, unlimited
};

class replay_cache {
 public:
  explicit replay_cache(device_ref device, cache_options options = {});
  // Waits for what is still queued.
  ~replay_cache();
  replay_cache(const replay_cache&) = delete;
  replay_cache& operator=(const replay_cache&) = delete;

  // Runs the step, one way or another, in stream order. Throws usage_error when the bindings do not
  // fit the signature, the stream is being captured, a body is being recorded around the call, or
  // another signature says that it is the same work and declares something else; and whatever the
  // body throws when it runs eagerly. With a reason of the caller's, `eagerly`, the step runs so,
  // and is counted under it.
  step_result run(site at, const step& what, bindings given,
                  std::shared_ptr<const reason> eagerly = nullptr);

  // Records a step ahead of time for inputs of these shapes, by slot, without running it: its state
  // and overwrites are as before. Null when there is a recording now; otherwise why there is none.
  // Throws usage_error as `run` does.
  std::shared_ptr<const reason> prepare(site at, const step& what, std::span<const dims> shapes);
  std::shared_ptr<const reason> prepare(site at, const step& what,
                                        std::initializer_list<dims> shapes) {
    return prepare(at, what, std::span{shapes.begin(), shapes.size()});
  }

  // Told of every mark. Steps run eagerly while one is installed whose works cannot be captured;
  // what others enqueue becomes part of the recordings that are made under them.
  void observe(std::shared_ptr<mark_observer> observer);
  void stop_observing();

  // Drops what can never be right again. Runs do so when they meet such a recording; after a change
  // of weights a caller need not wait for that.
  std::size_t drop_stale(std::source_location place = std::source_location::current());
  // Drops all recordings and waits for them: before a pause that gives memory to others. Throws
  // usage_error in a break of one of them.
  void sleep(std::source_location place = std::source_location::current());

  const step_counts& counts() const { return counts_; }
  cache_bytes bytes() const;
  const byte_budget& budget() const { return *budget_; }
  std::size_t recordings() const { return kept_.size(); }
  // How often a replay waited for a free slot for its inputs.
  std::uint64_t staging_waits() const { return kept_.staging_waits(); }
  const verification* verified() const;  // null unless options.verify

  // Each recording, the last used first; and keys that were missed, with what they differed in.
  cache_report report() const;
  // The report for people.
  std::string explain() const { return text_of(report()); }

  // The host waits for every queued run of this cache. All streams are tried; the first failure is
  // thrown, or told, where an exception is on its way already.
  void drain(std::source_location place = std::source_location::current());

 private:
  step_result run_eagerly(site at, const step& what, bindings given,
                          std::shared_ptr<const reason> why);
  step_result replay(site at, const step& what, bindings given, kept_recording& made);
  step_result run_breached(site at, const step& what, bindings given, kept_recording& made);
  step_result run_before_drop(site at, const step& what, bindings given,
                              std::shared_ptr<const reason> why, kept_recording& made);
  step_result run_observed(site at, const step& what, bindings given);
  step_result run_missed(site at, const step& what, bindings given, std::uint64_t hash,
                         std::uint64_t observed);
  step_result record(site at, const step& what, bindings given, std::uint64_t hash,
                     std::uint64_t observed);

  // What the observers would put into a recording, as a word; none: they cannot be recorded.
  std::optional<std::uint64_t> observed_as() const;
  void require_same_work(const step& what);
  std::shared_ptr<const reason> not_admitted(const step& what, bindings given, key_record& key);
  recorder_options options_for(std::uint64_t hash, bindings given, budget_share& reserved,
                               std::source_location place);
  std::shared_ptr<const reason> over_budget(const recording_bytes& needs) const;
  void keep(recording made, const step& what, std::uint64_t hash, budget_share reserved);
  void tell_of_bare_run(replay_id id) const;
  void tell_once(const step& what, std::string_view kind, const reason& why);

  device_ref device_;
  cache_options options_;
  std::unique_ptr<byte_budget> own_budget_;
  byte_budget* budget_;
  eager_runner eager_;
  key_history history_;
  kept_recordings kept_;
  std::optional<recorder> recorder_;  // made at the first capture
  std::optional<verifier> verifier_;
  std::vector<std::shared_ptr<mark_observer>> observers_;
  std::unordered_map<std::string, std::optional<signature>> works_;  // by what they say they are
  signature_id checked_work_ = signature_id::none;
  std::unordered_map<std::string, std::shared_ptr<const reason>> never_;  // by their rule
  std::set<std::string> told_;
  std::vector<std::uint64_t> parts_;  // of the key of the call that is looked for
  step_counts counts_;
  std::shared_ptr<const reason> off_;
  std::shared_ptr<const reason> observed_;
  std::shared_ptr<const reason> running_;
  std::shared_ptr<const reason> too_few_uses_;
};

}  // namespace reprise
