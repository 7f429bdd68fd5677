// The call most users need: run this step; replay it if that is right, record it if that is new,
// and otherwise run it eagerly and say why.
//
// First form: one recording per signature and input shapes, kept until a fact changes or the cache
// is destroyed. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reprise/replay/eager.hpp"
#include "reprise/replay/recorder.hpp"
#include "reprise/replay/recording.hpp"
#include "reprise/replay/verifier.hpp"

namespace reprise {

struct cache_options {
  bool record = true;     // false: every step runs eagerly; nothing of capture is ever called
  bool verify = false;    // run each replay eagerly as well and compare the bits
  int failure_limit = 4;  // captures of one key that may fail before it stays eager
};

// What happened to all runs so far.
struct step_counts {
  std::uint64_t captured = 0;
  std::uint64_t replayed = 0;
  std::uint64_t eager = 0;
  std::map<std::string, std::uint64_t> eager_reasons;  // by rule; they add up to `eager`
};

struct cache_bytes {
  std::size_t recordings = 0;  // static memory and pinned slots, retired ones included
  std::size_t eager = 0;       // of eager runs, outside any recording
  std::size_t verification = 0;
};

class replay_cache {
 public:
  explicit replay_cache(device_ref device, cache_options options = {});
  // Waits for what is still queued.
  ~replay_cache();
  replay_cache(const replay_cache&) = delete;
  replay_cache& operator=(const replay_cache&) = delete;

  // Runs the step, one way or another, in stream order. Throws usage_error when the bindings do not
  // fit the signature or the stream is being captured, and whatever the body throws when it runs
  // eagerly.
  step_result run(site at, const step& what, bindings given);

  // Told of every mark; steps run eagerly from now on.
  void observe(std::shared_ptr<mark_observer> observer);
  void stop_observing();

  const step_counts& counts() const { return counts_; }
  cache_bytes bytes() const;
  std::size_t recordings() const;
  // How often a replay waited for a free slot for its inputs.
  std::uint64_t staging_waits() const;
  const verification* verified() const;  // null unless options.verify

  // The host waits for every queued run of this cache.
  void drain(std::source_location place = std::source_location::current());

 private:
  // All recordings of one signature, one per input shapes; a handful, so a walk finds them.
  struct family {
    std::vector<recording> recordings;
    std::vector<std::pair<contract, int>> failures;  // by shapes
    std::shared_ptr<const reason> never;             // of a step that is never captured
  };

  step_result run_eagerly(site at, const step& what, bindings given,
                          std::shared_ptr<const reason> why);
  step_result replay(site at, const step& what, bindings given, recording& made);
  step_result record(site at, const step& what, bindings given, family& of);
  std::shared_ptr<const reason> broken(const step& what, const recording& made);
  void retire(family& of, std::size_t index, std::source_location place);
  void reap(std::source_location place);

  device_ref device_;
  cache_options options_;
  eager_runner eager_;
  std::optional<recorder> recorder_;  // made at the first capture
  std::optional<verifier> verifier_;
  std::vector<std::shared_ptr<mark_observer>> observers_;
  std::unordered_map<signature_id, family> families_;
  std::vector<recording> retired_;
  std::uint64_t waits_of_reaped_ = 0;
  step_counts counts_;
  std::shared_ptr<const reason> off_;
  std::shared_ptr<const reason> observed_;
};

}  // namespace reprise
