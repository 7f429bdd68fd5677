#include "reprise/replay/signature.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "reprise/base/error.hpp"

namespace reprise {

namespace {

constexpr std::size_t max_inputs = 64;

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

std::uint64_t version_of(const void* object) {
  return static_cast<const version_counter*>(object)->value();
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
  if (inputs_.size() == max_inputs) {
    throw usage_error{fmt::format("step '{}': more than {} inputs; gather some into one tensor",
                                  name_, max_inputs)};
  }
  inputs_.push_back(std::move(declared));
  return static_cast<int>(inputs_.size()) - 1;
}

int signature::add_output(declared_output declared) {
  claim(declared.name);
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

void signature::uses(std::string name, const parameter& weight) {
  claim(name);
  facts_.push_back(
      {name + " address", &address_of, &weight, "the step is recorded again at its new address"});
  facts_.push_back({std::move(name) + " version", &version_of, &weight.version,
                    "the step is recorded again with the new weights"});
}

void signature::fact(std::string name, const version_counter& counter) {
  claim(name);
  facts_.push_back(
      {std::move(name), &version_of, &counter, "the step is recorded again under the new version"});
}

void signature::fact(std::string name, std::function<std::uint64_t()> read) {
  claim(name);
  functions_.push_back(std::make_shared<const std::function<std::uint64_t()>>(std::move(read)));
  facts_.push_back({std::move(name),
                    [](const void* object) {
                      return (*static_cast<const std::function<std::uint64_t()>*>(object))();
                    },
                    functions_.back().get(), "the step is recorded again under the new value"});
}

void signature::check(bindings given) const {
  std::array<bool, max_inputs> bound{};
  for (const binding& b : given) {
    if (b.of != id_ || b.slot < 0 || static_cast<std::size_t>(b.slot) >= inputs_.size()) {
      throw usage_error{
          fmt::format("step '{}': a binding is of another step's input; use the handles "
                      "of this signature",
                      name_)};
    }
    const auto slot = static_cast<std::size_t>(b.slot);
    const declared_input& declared = inputs_[slot];
    if (bound[slot]) {
      throw usage_error{
          fmt::format("step '{}': input '{}' is bound twice; bind it once", name_, declared.name)};
    }
    bound[slot] = true;
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
    if (!bound[slot]) {
      throw usage_error{
          fmt::format("step '{}': input '{}' is not bound; a missing input is never "
                      "served with an earlier value, so bind it at each call",
                      name_, inputs_[slot].name)};
    }
  }
}

}  // namespace reprise
