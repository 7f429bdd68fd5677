// Marks, and who is told of them: a step says "this tensor is resid_pre 5" where it passes it.
//
// An observer may enqueue work of its own at each mark. One that can be captured says so with a
// word, which becomes part of the key: steps under it are recorded with what it enqueues, and the
// recording owns what it left. Under any other, steps run eagerly while it is installed.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "reprise/base/ids.hpp"
#include "reprise/device/device.hpp"
#include "reprise/device/tensor.hpp"
#include "reprise/replay/outcome.hpp"

namespace reprise {

class step_scope;

// Which part of a tensor one process has, where a model is spread over several: {1, 4, 0} is the
// second of four, split along the first axis. Axis -1: none is split, as where parts are added up.
struct shard_of {
  int index = 0;
  int count = 1;  // 1: the whole tensor
  int axis = -1;

  bool operator==(const shard_of&) const = default;
};

// A named place in a model: {"resid_pre", 5}; {"q", 5, {1, 4, 1}} for a part of that tensor.
struct point {
  std::string_view kind;
  int layer = 0;
  shard_of shard{};
};

// What an observer has put into the graph of one recording. Used by the thread that runs the step.
class recorded_marks {
 public:
  virtual ~recorded_marks() = default;
  // When nothing else stands in the way of a replay. Null: it will be launched; else why the step
  // has to run eagerly this time, and nothing was changed.
  virtual std::shared_ptr<const reason> make_room(site at) = 0;
  // Ahead of the launch, in the order of its stream, behind every replay before.
  virtual void before_launch(site at, replay_id id) = 0;
  // The launch is enqueued; or it failed, and nothing of it runs.
  virtual void after_launch(site at, bool launched) noexcept = 0;
};

class mark_observer {
 public:
  virtual ~mark_observer() = default;
  // As the body passes a mark; may enqueue work on the scope's stream.
  virtual void on_mark(step_scope& run, point where, const tensor_ref& what) = 0;

  // What recordings that are made now would have in them, as one word: equal words, equal works.
  // 0: its works cannot be captured. `leaves_nothing`: no work at all, so that what is recorded now
  // is what is recorded without it, and serves both.
  virtual std::uint64_t recorded_as() const { return 0; }
  static constexpr std::uint64_t leaves_nothing = ~std::uint64_t{0};
  // Around each run of a body that it is told of; the scope's stream is being captured or is not.
  // Warm-ups are not shown: they leave no trace. What on_end returns of a capture the recording
  // owns. A body that throws is abandoned instead of ended, and so is one whose on_end throws.
  virtual void on_begin(step_scope&) {}
  virtual std::shared_ptr<recorded_marks> on_end(step_scope&) { return nullptr; }
  virtual void on_abandoned() noexcept {}
  // A step ran that it leaves nothing in, and of which it was told nothing else.
  virtual void on_bare_run(replay_id) {}
};

}  // namespace reprise
