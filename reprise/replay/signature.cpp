#include "reprise/replay/signature.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "reprise/base/error.hpp"

namespace reprise {

namespace {

constexpr std::size_t most_tensors = 64;

signature_id next_signature() {
  static std::atomic<std::uint64_t> last{0};
  return signature_id{++last};
}

bool matches(const dims& pattern, const dims& shape) {
  if (pattern.rank != shape.rank) return false;
  for (int i = 0; i < pattern.rank; ++i) {
    if (pattern[i] != any && pattern[i] != shape[i]) return false;
  }
  return true;
}

std::uint64_t address_of(const void* object) {
  return reinterpret_cast<std::uintptr_t>(static_cast<const parameter*>(object)->value.data);
}

std::uint64_t count_of(const void* object) {
  return static_cast<const version_counter::count*>(object)->load(std::memory_order_acquire);
}

std::uint64_t value_of(const void* object) {
  return *static_cast<const std::uint64_t*>(object);
}

std::uint64_t result_of(const void* object) {
  return (*static_cast<const std::function<std::uint64_t()>*>(object))();
}

}  // namespace

dims shape_from_count(const dims& pattern, std::size_t count, std::string_view name) {
  dims shape = pattern;
  std::size_t fixed = 1;
  int open = -1;
  for (int i = 0; i < pattern.rank; ++i) {
    if (pattern[i] != any) {
      fixed *= static_cast<std::size_t>(pattern[i]);
    } else if (open < 0) {
      open = i;
    } else {
      throw usage_error{
          fmt::format("{}: pattern {} leaves more than one extent open; give the shape "
                      "beside the elements",
                      name, to_string(pattern))};
    }
  }
  const bool fits = open < 0 ? count == fixed : fixed != 0 && count % fixed == 0;
  if (!fits) {
    throw usage_error{
        fmt::format("{}: {} elements do not fit the pattern {}; bind as many as it says", name,
                    count, to_string(pattern))};
  }
  if (open >= 0) {
    shape.extent[static_cast<std::size_t>(open)] = static_cast<std::int64_t>(count / fixed);
  }
  return shape;
}

signature::signature(std::string name) : name_{std::move(name)}, id_{next_signature()} {}

void signature::record_anew() {
  recorded_as_ = next_signature();
}

signature signature::variant(std::string name) const {
  signature other = *this;
  other.name_ = std::move(name);
  other.work_.clear();
  other.record_anew();
  return other;
}

void signature::include(const signature& other, const std::string& prefix) {
  if (other.random_ != nullptr && random_ != nullptr && other.random_ != random_) {
    throw usage_error{fmt::format(
        "step '{}': its part '{}' draws from another random counter; one step draws from one, so "
        "give all parts the same",
        name_, prefix)};
  }
  if (other.random_ != nullptr) random_ = other.random_;
  const auto named = [&](const std::string& name) { return prefix + "." + name; };
  for (const declared_use& use : other.uses_) {
    claim(named(use.name));
    uses_.push_back({named(use.name), use.weight, use.trained});
  }
  for (const declared_write& write : other.writes_) {
    claim(named(write.name));
    writes_.push_back({named(write.name), write.where, write.restored});
  }
  for (declared_fact fact : other.facts_) {
    fact.name = named(fact.name);
    facts_.push_back(std::move(fact));
  }
  for (const std::string& key : other.keys_) keys_.push_back(named(key));
  fact_words_.insert(fact_words_.end(), other.fact_words_.begin(), other.fact_words_.end());
  key_words_.insert(key_words_.end(), other.key_words_.begin(), other.key_words_.end());
  held_.insert(held_.end(), other.held_.begin(), other.held_.end());
}

void signature::claim(const std::string& name) {
  if (std::ranges::find(names_, name) != names_.end()) {
    throw usage_error{
        fmt::format("step '{}': the name '{}' is declared twice; names are unique in a "
                    "signature",
                    name_, name)};
  }
  names_.push_back(name);
}

int signature::add_input(declared_input declared) {
  claim(declared.name);
  if (inputs_.size() == most_tensors) {
    throw usage_error{fmt::format("step '{}': more than {} inputs; gather some into one tensor",
                                  name_, most_tensors)};
  }
  inputs_.push_back(std::move(declared));
  return static_cast<int>(inputs_.size()) - 1;
}

int signature::add_output(declared_output declared) {
  claim(declared.name);
  if (outputs_.size() == most_tensors) {
    throw usage_error{fmt::format("step '{}': more than {} outputs; gather some into one tensor",
                                  name_, most_tensors)};
  }
  outputs_.push_back(std::move(declared));
  return static_cast<int>(outputs_.size()) - 1;
}

void signature::state(std::string name, const tensor_ref& where) {
  claim(name);
  writes_.push_back({std::move(name), where, true});
}

void signature::overwrites(std::string name, const tensor_ref& where) {
  claim(name);
  writes_.push_back({std::move(name), where, false});
}

declared_word signature::word_of(std::function<std::uint64_t()> read) {
  auto held = std::make_shared<const std::function<std::uint64_t()>>(std::move(read));
  held_.push_back(held);
  return {&result_of, held.get()};
}

declared_word signature::word_of(const std::shared_ptr<version_counter::count>& count) {
  held_.push_back(count);
  return {&count_of, count.get()};
}

void signature::uses(std::string name, const parameter& weight) {
  claim(name);
  uses_.push_back({name, &weight});
  facts_.push_back({name + " address", on_breach::retire,
                    "the step is recorded again at its new address", nullptr});
  fact_words_.push_back({&address_of, &weight});
  facts_.push_back({std::move(name) + " version", on_breach::retire,
                    "the step is recorded again with the new weights", weight.version.shared()});
  fact_words_.push_back(word_of(weight.version.shared()));
}

void signature::trains(std::string name, parameter& weight) {
  claim(name);
  uses_.push_back({name, &weight, &weight});
  facts_.push_back({std::move(name) + " address", on_breach::retire,
                    "the step is recorded again at its new address", nullptr});
  fact_words_.push_back({&address_of, &weight});
}

void signature::take_inputs_direct() {
  for (declared_input& one : inputs_) one.mode = input_mode::direct;
}

void signature::fact(std::string name, const version_counter& counter, on_breach then) {
  claim(name);
  facts_.push_back(
      {std::move(name), then,
       then == on_breach::retire
           ? "the step is recorded again under the new version"
           : "cache_options::retire_after says when it is recorded again under the new version",
       counter.shared()});
  fact_words_.push_back(word_of(counter.shared()));
}

void signature::fact(std::string name, std::function<std::uint64_t()> read, on_breach then) {
  claim(name);
  facts_.push_back({std::move(name), then,
                    then == on_breach::retire
                        ? "the step is recorded again under the new value"
                        : "set it back to the value of the recording to replay again",
                    nullptr});
  fact_words_.push_back(word_of(std::move(read)));
}

void signature::key(std::string name, std::uint64_t value) {
  claim(name);
  keys_.push_back(std::move(name));
  const auto held = std::make_shared<const std::uint64_t>(value);
  held_.push_back(held);
  key_words_.push_back({&value_of, held.get()});
}

void signature::key(std::string name, std::function<std::uint64_t()> read) {
  claim(name);
  keys_.push_back(std::move(name));
  key_words_.push_back(word_of(std::move(read)));
}

std::string signature::difference(const signature& other) const {
  const auto differ = [](const auto& ours, const auto& theirs, auto&& same) -> std::string {
    const std::size_t both = std::min(ours.size(), theirs.size());
    for (std::size_t i = 0; i < both; ++i) {
      if (!same(ours[i], theirs[i])) return ours[i].name;
    }
    if (ours.size() == theirs.size()) return {};
    return ours.size() > both ? ours[both].name : theirs[both].name;
  };
  std::string name = differ(inputs_, other.inputs_, [](const auto& a, const auto& b) {
    return a.name == b.name && a.type == b.type && a.pattern == b.pattern && a.mode == b.mode &&
           a.optional == b.optional;
  });
  if (name.empty()) {
    name = differ(outputs_, other.outputs_, [](const auto& a, const auto& b) {
      return a.name == b.name && a.type == b.type && a.policy == b.policy;
    });
  }
  if (name.empty()) {
    name = differ(writes_, other.writes_, [](const auto& a, const auto& b) {
      return a.name == b.name && a.restored == b.restored && a.where.bytes() == b.where.bytes();
    });
  }
  if (name.empty()) {
    name = differ(facts_, other.facts_, [](const auto& a, const auto& b) {
      return a.name == b.name && a.breach == b.breach;
    });
  }
  if (name.empty() && keys_ != other.keys_) name = "its key parts";
  if (name.empty() && (random_ == nullptr) != (other.random_ == nullptr)) name = "its counter";
  return name;
}

void signature::check_output(const binding& b, std::uint64_t& bound) const {
  const declared_output& declared = outputs_[static_cast<std::size_t>(b.slot)];
  const std::uint64_t bit = std::uint64_t{1} << b.slot;
  if ((bound & bit) != 0) {
    throw usage_error{
        fmt::format("step '{}': output '{}' is bound twice; bind it once", name_, declared.name)};
  }
  bound |= bit;
  if (b.to.data == nullptr && b.to.shape.count() != 0) {
    throw usage_error{
        fmt::format("step '{}': output '{}' is to go to null; bind device memory, or leave it out",
                    name_, declared.name)};
  }
}

void signature::check(bindings given) const {
  std::uint64_t bound = 0;
  std::uint64_t outputs_bound = 0;
  for (const binding& b : given) {
    const std::size_t slots = b.is_output ? outputs_.size() : inputs_.size();
    if (b.of != id_ || b.slot < 0 || static_cast<std::size_t>(b.slot) >= slots) {
      throw usage_error{
          fmt::format("step '{}': a binding is of another step's input; use the handles "
                      "of this signature",
                      name_)};
    }
    if (b.is_output) {
      check_output(b, outputs_bound);
      continue;
    }
    const auto slot = static_cast<std::size_t>(b.slot);
    const declared_input& declared = inputs_[slot];
    const std::uint64_t bit = std::uint64_t{1} << slot;
    if ((bound & bit) != 0) {
      throw usage_error{
          fmt::format("step '{}': input '{}' is bound twice; bind it once", name_, declared.name)};
    }
    bound |= bit;
    if (b.to.data == nullptr && b.to.shape.count() != 0) {
      throw usage_error{fmt::format("step '{}': input '{}' is null; bind {} elements of {}", name_,
                                    declared.name, to_string(declared.pattern),
                                    name_of(declared.type))};
    }
    if (b.to.type != declared.type || !matches(declared.pattern, b.to.shape)) {
      throw usage_error{fmt::format("step '{}': input '{}' is {} {}, expected {} {}", name_,
                                    declared.name, name_of(b.to.type), to_string(b.to.shape),
                                    name_of(declared.type), to_string(declared.pattern))};
    }
  }
  for (std::size_t slot = 0; slot < inputs_.size(); ++slot) {
    if ((bound >> slot & 1) == 0 && !inputs_[slot].optional) {
      throw usage_error{
          fmt::format("step '{}': input '{}' is not bound; a missing input is never "
                      "served with an earlier value, so bind it at each call",
                      name_, inputs_[slot].name)};
    }
  }
}

}  // namespace reprise
