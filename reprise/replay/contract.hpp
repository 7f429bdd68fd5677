// The terms of one recording: its key, what each fact read when it was made, and the memory that
// its graph touches.
//
// The key says which recording a call asks for: the step, shapes and absence of its inputs, and the
// key parts that the signature declares. Facts say whether the recording is right: they are read
// from the signature of the call, so a step that was built anew is asked about its own. All of it
// is checked before every replay: words are compared, nothing is allocated, locked or written. Text
// is made only when somebody asks why.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reprise/device/freed_memory.hpp"
#include "reprise/replay/outcome.hpp"
#include "reprise/replay/signature.hpp"

namespace reprise {

class contract {
 public:
  // What `actual` of a breach says of memory that is gone.
  static constexpr const char* freed = "it was freed";

  // Reads all key parts and facts now. `observed`: what observers put into the graph, as a word;
  // 0: nothing.
  contract(const signature& declared, bindings given, std::uint64_t observed = 0);

  // Of the key of a call, by its structure: equal keys hash alike, and `fits` compares. Reads the
  // key parts into `parts`, so that a call reads each once, and all of it is about one value; what
  // is observed is the last of them.
  static std::uint64_t hash(const signature& declared, bindings given,
                            std::vector<std::uint64_t>& parts, std::uint64_t observed = 0);
  std::uint64_t hash() const noexcept { return hash_; }

  // Whether a step with this signature is the one that was recorded.
  bool is_of(const signature& declared) const noexcept;
  // Whether a call asks for this recording: the whole key is compared, but for what is observed.
  // The bindings passed signature::check.
  bool fits(const signature& declared, bindings given) const noexcept;
  // The same for a caller that has read the key parts of the call.
  bool fits(const signature& declared, bindings given,
            std::span<const std::uint64_t> parts) const noexcept;
  // How a call's key differs from this one, part by part; empty when it fits.
  std::vector<breach> differences(const signature& declared, bindings given) const;
  // The key in words: "x [8, 256], y absent, branch 3".
  std::string key_text() const;

  // Whether all facts read what they read then, and all memory is there.
  bool holds(const signature& declared) const noexcept;
  // Of what the facts read now: while it stays the same, so does what explain() says.
  std::uint64_t hash_of_facts(const signature& declared) const noexcept;
  // What does not hold: facts in the order they were declared, and then the memory, which a fact
  // that changed explains better than its free does.
  std::vector<breach> explain(const signature& declared) const;
  // What is to be done about it: `retire`, unless all that does not hold says run_eagerly.
  on_breach decides(const signature& declared) const;
  // Whether it can never hold again: a version has moved on, or memory is gone. Asks no object of
  // the step, which may not be there any more.
  bool is_stale() const noexcept;

  // Void from the moment that this memory, which the graph touches, is freed.
  void depends_on(device_ref device, const freed_watch::span& where, std::string name);
  bool knows(const freed_watch::span& where) const noexcept;

  std::size_t facts() const { return expected_.size(); }

 private:
  struct input_key {
    dims shape;
    std::int8_t alignment = -1;  // of a direct input: its class; -1: staged
    bool given = false;
    bool operator==(const input_key&) const = default;
  };
  struct version {
    std::shared_ptr<const version_counter::count> count;
    std::uint64_t expected;
  };

  static input_key key_of(const signature& declared, const binding& b) noexcept;
  std::uint64_t given_inputs() const;
  bool fits_but_for_parts(const signature& declared, bindings given) const noexcept;

  signature_id of_;
  std::string work_;
  std::uint64_t hash_;
  std::vector<std::string> input_names_;
  std::vector<input_key> inputs_;  // by slot
  std::vector<std::string> key_names_;
  std::vector<std::uint64_t> keys_;
  std::vector<const std::byte*> writes_;  // where state and overwrites lie
  std::vector<std::uint64_t> expected_;   // of the facts, in their order
  std::vector<version> versions_;
  std::vector<std::string> touched_;
  std::unique_ptr<freed_watch> memory_;  // null: nothing to watch
};

}  // namespace reprise
