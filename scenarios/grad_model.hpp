// A model of the rules of graphed ops: how each call of a schedule runs, by which cause it runs
// eagerly, and every count, without running anything. Written from docs/training.md, not from
// reprise/grad: it keeps plain lists and asks all of them, where the runtime must be fast.
//
// Its caller says only what makes sense (expected_values::makes_sense), in the order of the calls.
// One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "reprise/grad/counts.hpp"
#include "reprise/replay/outcome.hpp"
#include "scenarios/grad_schedule.hpp"

namespace reprise::scenarios {

// A mistake of the model's, to show that one is found: it forgets that the replay of an earlier
// frame of the pool makes later ones stale.
enum class model_slip : std::uint8_t { none, forgets_the_pool };

class grad_model {
 public:
  explicit grad_model(const grad_schedule& of, model_slip slip = model_slip::none);
  ~grad_model();
  grad_model(const grad_model&) = delete;
  grad_model& operator=(const grad_model&) = delete;

  // A forward, or one that runs again, by the flags of the first; the ticket of its id is this
  // one's from now on.
  ran forward(const scheduled& call);
  void infer(const scheduled& call);
  // Of a ticket that is there, whose operands have not changed.
  ran backward(const scheduled& call);
  void drop(int id);
  // Whether the state that the forward returned can be read.
  bool recall(int id);
  void reset();
  void begin(const scheduled& span);
  void end();

  const grad_counts& counts(int op) const;
  // The first count that differs, in words; empty when none does. Times are not compared.
  std::string difference(int op, const grad_counts& counted) const;

 private:
  // What makes a call another key: shapes, what was left out, what lies on the host, precision.
  using key = std::tuple<int, bool, bool, matrix_precision, cast_mode>;
  struct pool;
  struct frame;
  struct owner;
  struct op;
  struct open_region;
  struct way;
  struct remembered;
  // Ops of one work, on one lane, that return gradients in one way: in a region they use each
  // other's frames.
  using group = std::tuple<bool, op_kind, int, gradients, key>;

  const scheduled_op& options(const op& of) const;
  bool home_of(op& by, const scheduled& call);
  key key_of(const scheduled& call) const;
  way find_way(op& by, const scheduled& call);
  way find_in_region(op& by, const group& of);
  bool may_capture(const op& by, const key& asked) const;
  bool is_void(const frame& one) const;
  bool is_owned_by(const frame& one, const owner& asked) const;
  bool owes(const frame& one) const;
  std::shared_ptr<frame> captured(op& by, const key& asked);
  void replay(frame& in, const std::shared_ptr<owner>& now);

  const grad_schedule& of_;
  model_slip slip_;
  std::vector<op> ops_;
  std::map<int, std::shared_ptr<owner>> tickets_;  // by id; those that live
  std::map<int, remembered> states_;               // that forwards returned, by id
  std::shared_ptr<pool> shared_[2];                // by stream: for frames that are captured now
  std::map<group, std::vector<std::weak_ptr<frame>>> groups_;
  std::vector<open_region> regions_;
  std::uint64_t time_ = 0;
};

}  // namespace reprise::scenarios
