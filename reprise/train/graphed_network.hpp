// graphed_network: a module's forward as one recording and its backward as another, a part of a
// training step (part.hpp).
//
//   graphed_network trunk{module, budget, {.on = true}};
//   training_run run{{&trunk}};
//   run.start(s);
//   const part_call call = trunk.forward(s, operand{trunk.x(), images});
//   const tensor<float> dx = trunk.backward(s, call, dy);
//   run.end();
//
// Gradients of parameters are written, or added to what is there. A second forward while a backward
// is owed runs eagerly. Bits are those of the module's layers run eagerly, however it runs. It may
// hold other parts, which then hear the same events and are cleared with it. One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reprise/train/part_life.hpp"
#include "reprise/train/recorded_module.hpp"
#include "reprise/train/run_part.hpp"

namespace reprise {

class graphed_network {
 public:
  // The budget outlives it, and so does what the module refers to.
  graphed_network(nn::sequence module, byte_budget& budget, const part_options& options = {});
  graphed_network(const graphed_network&) = delete;
  graphed_network& operator=(const graphed_network&) = delete;

  // Of the module.
  const input<float>& x() const { return module_.module().x; }

  // In training, in stream order. Throws what graphed::forward throws.
  part_call forward(site at, const operand& x);
  // Forms the gradients of one forward; empty unless that of x is wanted. With gradients::moved it
  // lies in the recording's memory until the next forward or backward of the part, which moves it
  // where it is still alive. Throws usage_error for the call of another part, and what
  // graphed::backward throws.
  tensor<float> backward(site at, const part_call& call, const tensor<float>& dy,
                         bool wants_x = false);
  // As the module is in inference, eagerly; nothing that a backward needs is touched.
  tensor<float> infer(site at, const operand& x);

  // A part inside of it, which outlives it: it hears the events of this one's run, and is cleared
  // ahead of it, whatever fails. Throws usage_error for a network that holds this one.
  void hold(run_part child);

  // Tells the observer of each mark of its layers: while there is one, calls run eagerly, and
  // recordings are retired.
  void observe(const std::shared_ptr<mark_observer>& observer) { module_.observe(observer); }
  void stop_observing() { module_.stop_observing(); }

  // Of the module.
  const std::string& name() const { return module_.name(); }
  part_state state() const { return life_.state(); }
  // Why it is refused or retired; empty otherwise.
  const std::string& reason() const { return life_.reason(); }
  part_counts counts() const;

 private:
  friend struct part_events;

  bool records_here(site at);
  void clear(std::source_location place);
  void open(site at);
  void batch_start() { module_.forget_pending(); }
  part_counts all_counts() const { return counts(); }
  bool holds(const graphed_network& other) const;

  part_life life_;
  recorded_module module_;
  std::vector<run_part> children_;
  bool lacks_precision_ = false;  // the device has no bodies for the casts
  std::uint64_t clears_ = 0;
  std::uint64_t low_precision_ = 0;
};

}  // namespace reprise
