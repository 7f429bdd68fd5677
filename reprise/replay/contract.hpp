// The terms of one recording: the shapes it was recorded with, and what each fact read then.
//
// Checked before every replay: words are compared, nothing is allocated, locked or written. Text is
// made only when somebody asks why.
#pragma once

#include <cstdint>
#include <vector>

#include "reprise/replay/outcome.hpp"
#include "reprise/replay/signature.hpp"

namespace reprise {

class contract {
 public:
  // Reads all facts now. The signature's facts outlive the contract.
  contract(const signature& declared, bindings given);

  // The bindings passed signature::check. Shapes are part of the key: a call of other shapes is
  // another recording, not a breach.
  bool fits(bindings given) const noexcept;
  bool holds() const noexcept;

  // Which facts differ, in the order they were declared; empty when all hold.
  std::vector<breach> explain() const;

  std::size_t facts() const { return terms_.size(); }

 private:
  // What is read before each replay, without the names: 32 facts are twelve lines of cache.
  struct term {
    std::uint64_t (*read)(const void* object);
    const void* object;
    std::uint64_t expected;

    bool holds() const noexcept { return read(object) == expected; }
  };

  std::vector<dims> shapes_;  // by input slot
  std::vector<term> terms_;
  std::vector<declared_fact> facts_;  // of the terms, in their order
};

}  // namespace reprise
