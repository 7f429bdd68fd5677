#include "reprise/replay/contract.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "reprise/base/mutant.hpp"

namespace reprise {

namespace {

constexpr int widest_load = 4;  // 2^4 bytes: no body loads wider, so what is aligned more is alike

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  // The finalizer of MurmurHash3 over a running sum (Appleby, 2011).
  hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdU;
  return hash ^ (hash >> 29);
}

// Of the step itself: a variant has the handles of its original, and recordings of its own.
signature_id identity(const signature& declared) noexcept {
  return REPRISE_MUTANT(variant_is_served_by_the_recording_of_its_original)
             ? declared.id()
             : declared.recorded_as();
}

// What two signatures of one step have in common.
std::uint64_t hash_of_step(const signature& declared) {
  if (declared.work().empty()) return static_cast<std::uint64_t>(identity(declared));
  std::uint64_t hash = declared.work().size();
  for (const char c : declared.work()) hash = mixed(hash, static_cast<unsigned char>(c));
  return hash;
}

std::string shown(const dims& shape, bool given) {
  return given ? to_string(shape) : "absent";
}

}  // namespace

contract::input_key contract::key_of(const signature& declared, const binding& b) noexcept {
  input_key key{b.to.shape, -1, true};
  const auto slot = static_cast<std::size_t>(b.slot);
  if (declared.inputs()[slot].mode == input_mode::direct && !b.on_host) {
    const auto address = reinterpret_cast<std::uintptr_t>(b.to.data);
    key.alignment = static_cast<std::int8_t>(std::min(std::countr_zero(address), widest_load));
  }
  return key;
}

contract::contract(const signature& declared, bindings given, std::uint64_t observed)
    : of_{identity(declared)}, work_{declared.work()}, inputs_(declared.inputs().size()) {
  hash_ = hash(declared, given, keys_, observed);
  for (const declared_input& in : declared.inputs()) input_names_.push_back(in.name);
  for (const binding& b : given) {
    if (!b.is_output) inputs_[static_cast<std::size_t>(b.slot)] = key_of(declared, b);
  }
  key_names_.assign(declared.keys().begin(), declared.keys().end());
  if (observed != 0) key_names_.emplace_back("observed as");
  for (const declared_write& write : declared.writes()) writes_.push_back(write.where.data);
  for (std::size_t i = 0; i < declared.facts().size(); ++i) {
    expected_.push_back(declared.fact_words()[i].now());
    const declared_fact& fact = declared.facts()[i];
    if (fact.version != nullptr && fact.breach == on_breach::retire) {
      versions_.push_back({fact.version, expected_.back()});
    }
  }
}

std::uint64_t contract::hash(const signature& declared, bindings given,
                             std::vector<std::uint64_t>& parts, std::uint64_t observed) {
  // Inputs may be bound in any order, so what they add is summed.
  std::uint64_t inputs = 0;
  for (const binding& b : given) {
    if (b.is_output) continue;
    const input_key key = key_of(declared, b);
    std::uint64_t one = mixed(static_cast<std::uint64_t>(b.slot) + 1,
                              static_cast<std::uint64_t>(key.alignment + 1));
    for (int i = 0; i < key.shape.rank; ++i) {
      one = mixed(one, static_cast<std::uint64_t>(key.shape[i]));
    }
    inputs += one;
  }
  std::uint64_t hash = mixed(hash_of_step(declared), inputs);
  const auto words = declared.key_words();
  parts.resize(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    parts[i] = words[i].now();
    hash = mixed(hash, parts[i]);
  }
  if (observed != 0) {
    parts.push_back(observed);
    hash = mixed(hash, observed);
  }
  return hash;
}

bool contract::is_of(const signature& declared) const noexcept {
  return work_.empty() ? identity(declared) == of_ : declared.work() == work_;
}

bool contract::fits(const signature& declared, bindings given) const noexcept {
  if (!fits_but_for_parts(declared, given)) return false;
  const auto words = declared.key_words();
  const std::span<const std::uint64_t> declared_keys{keys_.data(),
                                                     std::min(keys_.size(), words.size())};
  return std::ranges::equal(declared_keys, words, {}, {}, &declared_word::now) ||
         REPRISE_MUTANT(key_parts_are_not_compared);
}

bool contract::fits(const signature& declared, bindings given,
                    std::span<const std::uint64_t> parts) const noexcept {
  if (!fits_but_for_parts(declared, given)) return false;
  return std::ranges::equal(keys_, parts) || REPRISE_MUTANT(key_parts_are_not_compared);
}

bool contract::fits_but_for_parts(const signature& declared, bindings given) const noexcept {
  if (!is_of(declared)) return false;
  if (identity(declared) != of_) {
    // Another signature of the same work: the caller has seen that it declares the same names.
    const auto writes = declared.writes();
    const bool same_writes = std::ranges::equal(
        writes_, writes, {}, {}, [](const declared_write& write) { return write.where.data; });
    if (!same_writes) return false;
  }
  std::uint64_t bound = 0;
  for (const binding& b : given) {
    if (b.is_output) continue;
    if (!(inputs_[static_cast<std::size_t>(b.slot)] == key_of(declared, b))) return false;
    bound |= std::uint64_t{1} << b.slot;
  }
  return bound == given_inputs() || REPRISE_MUTANT(absent_inputs_are_not_compared);
}

std::uint64_t contract::given_inputs() const {
  std::uint64_t given = 0;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    given |= std::uint64_t{inputs_[i].given} << i;
  }
  return given;
}

std::vector<breach> contract::differences(const signature& declared, bindings given) const {
  std::vector<input_key> called(inputs_.size());
  for (const binding& b : given) {
    if (!b.is_output) called[static_cast<std::size_t>(b.slot)] = key_of(declared, b);
  }
  std::vector<breach> parts;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const input_key& was = inputs_[i];
    const input_key& is = called[i];
    if (was.given != is.given || !(was.shape == is.shape)) {
      parts.push_back({input_names_[i], shown(was.shape, was.given), shown(is.shape, is.given),
                       "each shape is a recording of its own"});
    } else if (was.alignment != is.alignment) {
      const auto aligned = [](int alignment) {
        return alignment < 0 ? std::string{"in host memory"}
                             : fmt::format("aligned to {} bytes", 1 << alignment);
      };
      parts.push_back({input_names_[i] + " alignment", aligned(was.alignment),
                       aligned(is.alignment), "bind memory that is aligned alike, as buffers are"});
    }
  }
  for (std::size_t i = 0; i < std::min(keys_.size(), declared.key_words().size()); ++i) {
    const std::uint64_t now = declared.key_words()[i].now();
    if (now == keys_[i]) continue;
    parts.push_back({key_names_[i], fmt::format("{}", keys_[i]), fmt::format("{}", now),
                     "each value is a recording of its own"});
  }
  const auto writes = declared.writes();
  for (std::size_t i = 0; i < writes_.size(); ++i) {
    if (writes[i].where.data == writes_[i]) continue;
    parts.push_back({writes[i].name, fmt::format("{}", fmt::ptr(writes_[i])),
                     fmt::format("{}", fmt::ptr(writes[i].where.data)),
                     "each place is a recording of its own"});
  }
  return parts;
}

std::string contract::key_text() const {
  std::string text;
  const auto add = [&](const std::string& name, const std::string& value) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  };
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const input_key& in = inputs_[i];
    add(input_names_[i], shown(in.shape, in.given) + (in.alignment < 0 ? "" : " direct"));
  }
  for (std::size_t i = 0; i < keys_.size(); ++i) add(key_names_[i], std::to_string(keys_[i]));
  return text.empty() ? "no inputs" : text;
}

bool contract::holds(const signature& declared) const noexcept {
  if (REPRISE_MUTANT(facts_are_not_looked_at)) return true;
  if (memory_ != nullptr && !memory_->intact()) return false;
  const auto words = declared.fact_words();
  for (std::size_t i = 0; i < expected_.size(); ++i) {
    if (words[i].now() != expected_[i]) return false;
  }
  return true;
}

std::uint64_t contract::hash_of_facts(const signature& declared) const noexcept {
  std::uint64_t hash = memory_ == nullptr || memory_->intact() ? 1 : 0;
  for (const declared_word& word : declared.fact_words()) hash = mixed(hash, word.now());
  return hash;
}

std::vector<breach> contract::explain(const signature& declared) const {
  std::vector<breach> breaches;
  for (std::size_t i = 0; i < expected_.size(); ++i) {
    const std::uint64_t actual = declared.fact_words()[i].now();
    if (actual == expected_[i]) continue;
    const declared_fact& fact = declared.facts()[i];
    breaches.push_back(
        {fact.name, fmt::format("{:#x}", expected_[i]), fmt::format("{:#x}", actual), fact.remedy});
  }
  if (memory_ != nullptr) {
    if (const auto gone = memory_->first_gone()) {
      breaches.push_back({touched_[*gone], "its memory is there", freed,
                          "the step is recorded again where it lies now"});
    }
  }
  return breaches;
}

on_breach contract::decides(const signature& declared) const {
  if (memory_ != nullptr && !memory_->intact()) return on_breach::retire;
  for (std::size_t i = 0; i < expected_.size(); ++i) {
    const bool broken = declared.fact_words()[i].now() != expected_[i];
    if (broken && declared.facts()[i].breach == on_breach::retire) return on_breach::retire;
  }
  return on_breach::run_eagerly;
}

bool contract::is_stale() const noexcept {
  if (memory_ != nullptr && !memory_->intact()) return true;
  return std::ranges::any_of(versions_, [](const version& v) {
    return v.count->load(std::memory_order_acquire) != v.expected;
  });
}

void contract::depends_on(device_ref device, const freed_watch::span& where, std::string name) {
  if (memory_ == nullptr) memory_ = std::make_unique<freed_watch>(device);
  touched_.push_back(std::move(name));
  memory_->add(where);
}

bool contract::knows(const freed_watch::span& where) const noexcept {
  return memory_ != nullptr &&
         std::ranges::any_of(memory_->spans(), [&](const freed_watch::span& one) {
           return one.begin == where.begin && one.bytes >= where.bytes;
         });
}

}  // namespace reprise
