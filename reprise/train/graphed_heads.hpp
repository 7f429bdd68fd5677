// graphed_heads: the prediction groups of a network, each a module whose forward and backward are
// recordings of its own, as one part of a training step (part.hpp).
//
//   graphed_heads heads{{{"class", class_head}, {"mask", mask_head}}, budget, {.on = true}};
//   const part_call call = heads.forward(s, 0, features);
//   const tensor<float> dfeatures = heads.backward(s, 0, call, dlogits);
//
// A group that owes a backward runs its next forward eagerly, until that has come or the next batch
// starts. One whose target is empty runs eagerly: it says so at its forward. Groups share a life:
// drift of one retires all. Layers must be on a list of kinds. Bits are those of the layers run
// eagerly. One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <typeindex>
#include <vector>

#include "reprise/train/gates.hpp"
#include "reprise/train/part_life.hpp"
#include "reprise/train/recorded_module.hpp"

namespace reprise {

struct head_group {
  std::string name;
  nn::sequence module;
};

class graphed_heads {
 public:
  // The budget outlives it, and so does what the modules refer to. `allowed`: the layers that are
  // recorded. Throws usage_error where there is no group.
  graphed_heads(std::vector<head_group> groups, byte_budget& budget,
                const part_options& options = {},
                std::vector<std::type_index> allowed = layer_kinds_of_nn());
  graphed_heads(const graphed_heads&) = delete;
  graphed_heads& operator=(const graphed_heads&) = delete;

  std::size_t size() const { return groups_.size(); }
  const std::string& name(std::size_t group) const { return at(group).name; }

  // In training, in stream order. Throws usage_error for a group that is not there, and what
  // graphed::forward throws.
  part_call forward(site at, std::size_t group, const tensor<float>& x, bool has_target = true);
  // Forms the gradients of one forward, and returns that of x. With gradients::moved it lies in the
  // recording's memory until the group's next forward or backward, which moves it where it is still
  // alive. Throws usage_error for the call of another group, and what graphed::backward throws.
  tensor<float> backward(site at, std::size_t group, const part_call& call,
                         const tensor<float>& dy);
  // As the module is in inference, eagerly; nothing that a backward needs is touched.
  tensor<float> infer(site at, std::size_t group, const tensor<float>& x);

  // Tells the observer of each mark of their layers: while there is one, calls run eagerly, and
  // recordings are retired.
  void observe(const std::shared_ptr<mark_observer>& observer);
  void stop_observing();

  part_state state() const { return life_.state(); }
  // Why they are refused or retired; empty otherwise.
  const std::string& reason() const { return life_.reason(); }
  // Clears and retirements are of all groups.
  part_counts counts(std::size_t group) const;

 private:
  friend struct part_events;

  struct one_group {
    std::string name;
    recorded_module module;
    std::uint64_t low_precision = 0;
    std::uint64_t empty_targets = 0;
  };

  one_group& at(std::size_t group) const;
  bool records_here(site where, one_group& group);
  bool is_observed() const;
  void clear(std::source_location place);
  void open(site where);
  void batch_start();
  part_counts all_counts() const;

  part_life life_;
  std::vector<std::unique_ptr<one_group>> groups_;
  std::vector<std::type_index> allowed_;
  bool lacks_precision_ = false;  // the device has no bodies for the casts
  std::uint64_t clears_ = 0;
};

}  // namespace reprise
