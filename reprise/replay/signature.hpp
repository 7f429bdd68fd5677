// What a step declares before it runs: inputs, outputs, what it updates and uses, and the facts
// under which a recording of it holds. Every name is written once and becomes a typed handle.
//
// A signature is built by one thread, then given to a step and never changed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/device/tensor.hpp"
#include "reprise/device/view.hpp"
#include "reprise/replay/philox_counter.hpp"

namespace reprise {

// Unique in the process. Handles carry it, so that another step's handle is refused.
enum class signature_id : std::uint64_t { none };

// Moves when the thing it stands for changes: weights, an adapter, a table. Copies count together,
// and recordings keep the count, so that they can ask it when its owner is gone. Thread safe.
class version_counter {
 public:
  using count = std::atomic<std::uint64_t>;

  version_counter() : count_{std::make_shared<count>(1)} {}

  void bump() noexcept { ++*count_; }
  std::uint64_t value() const noexcept { return count_->load(std::memory_order_acquire); }
  const std::shared_ptr<count>& shared() const noexcept { return count_; }

 private:
  std::shared_ptr<count> count_;
};

// A span of the program in which what the counter stands for is changed. It is another version from
// the first line on, and once more at the end, however the end is reached: a change that threw
// half-way leaves no recording of either state.
class version_change {
 public:
  explicit version_change(version_counter& of) : of_{of} { of_.bump(); }
  ~version_change() { of_.bump(); }
  version_change(const version_change&) = delete;
  version_change& operator=(const version_change&) = delete;

 private:
  version_counter& of_;
};

// A weight that steps use. Its address is a fact of every recording that uses it, and so is its
// version, unless training updates it in place (signature::trains).
struct parameter {
  tensor_ref value;
  version_counter version;
  // The gradient that backwards write, or add to: f32, as many elements as the value; none: it is
  // not trained. What lies there counts only while `has_grad`; to drop it is to clear that.
  tensor_ref grad{};
  bool has_grad = false;
};

// How a recording gets an input. `staged`: copied into its own memory at each replay. `direct`:
// read at the caller's address, which a replay brings as one word; only kernels whose cell says
// `indirect` can read it, and an input with another reader is staged after all.
enum class input_mode : std::uint8_t { staged, direct };

// What a fact that changed does to a recording. `retire`: it is dropped, and the step recorded
// again when it is admitted. `run_eagerly`: the step runs eagerly while it lasts.
enum class on_breach : std::uint8_t { retire, run_eagerly };

// What a run does to an output of an earlier one that somebody still holds a lease on. `revoke`: it
// goes ahead, and reading the lease is an error. `refuse`: it does not replay, but runs eagerly,
// and the reason names the holder. `move_aside`: it copies the output first.
enum class on_overwrite : std::uint8_t { revoke, refuse, move_aside };

// One input or output of one call: what is bound, and whether it lies in host memory.
struct binding {
  signature_id of = signature_id::none;
  int slot = -1;
  tensor_ref to;
  bool on_host = false;
  bool is_output = false;
};

// The bindings of one call, borrowed for its duration: `{x(a), y(b)}` or a span.
class bindings : public std::span<const binding> {
 public:
  bindings() = default;
  bindings(std::initializer_list<binding> list) : span{list.begin(), list.size()} {}
  bindings(std::span<const binding> list) : span{list} {}
  bindings(const std::vector<binding>& list) : span{list} {}
};

// Fills the extents that a pattern leaves open from the number of elements. Throws usage_error when
// the count does not fit, or when more than one extent is open.
dims shape_from_count(const dims& pattern, std::size_t count, std::string_view name);

template <element T>
class input {
 public:
  // Device memory, copied into the step's own at each run. The shape follows from the count where
  // the pattern leaves one extent open; say it where it leaves more.
  binding operator()(view<const T> from) const {
    return (*this)(from, shape_from_count(pattern_, from.size(), "input"));
  }
  binding operator()(view<const T> from, const dims& shape) const {
    return bind(from, shape_from_count(shape, from.size(), "input"), false);
  }

  // Host memory, pageable or not; it may be reused when the call returns.
  binding from_host(std::span<const T> from) const {
    return bind({from.data(), from.size()}, shape_from_count(pattern_, from.size(), "input"), true);
  }

  int slot() const { return slot_; }
  signature_id of() const { return of_; }

 private:
  friend class signature;
  input(int slot, signature_id of, const dims& pattern) : slot_{slot}, of_{of}, pattern_{pattern} {}

  binding bind(view<const T> from, const dims& shape, bool on_host) const {
    const view<T> unconst{const_cast<T*>(from.data()), from.size()};  // only ever read
    return {of_, slot_, as_tensor(unconst, shape), on_host};
  }

  int slot_;
  signature_id of_;
  dims pattern_;
};

template <element T>
class output {
 public:
  // The run leaves this output in the caller's memory too, in stream order. Throws usage_error,
  // from the run, when the count is not the output's.
  binding into(view<T> to) const { return {of_, slot_, as_tensor(to), false, true}; }

  int slot() const { return slot_; }
  signature_id of() const { return of_; }

 private:
  friend class signature;
  output(int slot, signature_id of) : slot_{slot}, of_{of} {}

  int slot_;
  signature_id of_;
};

struct declared_input {
  std::string name;
  dtype type;
  dims pattern;
  input_mode mode;
  bool optional;
};

struct declared_output {
  std::string name;
  dtype type;
  on_overwrite policy;
  bool is_state = false;  // signature::returned_state
};

// Memory that outlives the step and that its body writes.
struct declared_write {
  std::string name;
  tensor_ref where;
  bool restored;  // state: put back after a warm-up; an overwrite is idempotent and is not
};

// A word that is read anew before each replay; under a nanosecond where it is a counter or address.
struct declared_word {
  std::uint64_t (*read)(const void* object);
  const void* object;

  std::uint64_t now() const { return read(object); }
};

struct declared_fact {
  std::string name;
  on_breach breach;
  std::string remedy;
  std::shared_ptr<const version_counter::count> version;  // where it is one
};

// A parameter, where it lies now. It outlives the step.
struct declared_use {
  std::string name;
  const parameter* weight;
  parameter* trained = nullptr;  // the same, where training updates it in place
};

class signature {
 public:
  explicit signature(std::string name);

  // Says what work steps with this signature do, so that a cache takes another signature of the
  // same words, and that declares the same, for the same step: for programs that build their steps
  // anew. Whoever says so promises that their bodies enqueue the same work on the same memory,
  // but for what is declared. Without it each signature is a step of its own.
  void same_work_as(std::string work) { work_ = std::move(work); }

  template <element T>
  input<T> in(std::string name, const dims& pattern, input_mode mode = input_mode::staged) {
    return {add_input({std::move(name), dtype_of<T>, pattern, mode, false}), id_, pattern};
  }
  // A call may leave it out; the body asks step_scope::given. Recordings are apart.
  template <element T>
  input<T> optional_in(std::string name, const dims& pattern,
                       input_mode mode = input_mode::staged) {
    return {add_input({std::move(name), dtype_of<T>, pattern, mode, true}), id_, pattern};
  }
  template <element T>
  output<T> out(std::string name, on_overwrite policy = on_overwrite::revoke) {
    return {add_output({std::move(name), dtype_of<T>, policy}), id_};
  }

  // An output that is copied only when somebody reads it (reprise/grad/replayed_state.hpp).
  template <element T>
  output<T> returned_state(std::string name) {
    return {add_output({std::move(name), dtype_of<T>, on_overwrite::revoke, true}), id_};
  }
  // The same without types, for those who build a signature out of another. Return the slot.
  int add_input(declared_input declared);
  int add_output(declared_output declared);

  // Updated in place: snapshotted before a warm-up writes it, and put back.
  void state(std::string name, const tensor_ref& where);
  // Written with the same values however often the step runs on the same inputs, such as a cache
  // row at its position: not snapshotted.
  void overwrites(std::string name, const tensor_ref& where);
  // Its address and its version are facts. The parameter outlives the step.
  void uses(std::string name, const parameter& weight);
  // Training updates it in place: its address is a fact, its version is none, and a replay reads
  // what it holds then. The parameter outlives the step.
  void trains(std::string name, parameter& weight);
  void fact(std::string name, const version_counter& counter, on_breach then = on_breach::retire);
  void fact(std::string name, std::function<std::uint64_t()> read,
            on_breach then = on_breach::retire);
  // A part of the key: each value has recordings of its own. The branch set, the expert, the
  // precision of a scheduler.
  void key(std::string name, std::uint64_t value);
  void key(std::string name, std::function<std::uint64_t()> read);

  // The body draws random numbers (step_scope::draws), from this counter. It outlives the step.
  void random(philox_counter& counter) { random_ = &counter; }

  // For a step that stands in for this one's: a copy for which the handles of this signature are
  // good too, and that is recorded on its own. It may declare more.
  signature variant(std::string name) const;
  // Takes over what another signature uses, trains, writes and draws from, its facts and its key
  // parts, each name behind "PREFIX.": for a step whose body runs that work as a part of its own.
  // Inputs and outputs stay the other's. Throws usage_error when both draw, from two counters.
  void include(const signature& other, const std::string& prefix);
  // Declares all inputs direct: for a step whose body first brings them where it wants them.
  void take_inputs_direct();

  signature_id id() const { return id_; }  // of its handles
  // Of its recordings; no two signatures share one.
  signature_id recorded_as() const { return recorded_as_; }
  const std::string& name() const { return name_; }
  const std::string& work() const { return work_; }  // empty: a step of its own
  std::span<const declared_input> inputs() const { return inputs_; }
  std::span<const declared_output> outputs() const { return outputs_; }
  std::span<const declared_write> writes() const { return writes_; }
  std::span<const declared_use> uses() const { return uses_; }
  // Names and words in one order.
  std::span<const declared_fact> facts() const { return facts_; }
  std::span<const declared_word> fact_words() const { return fact_words_; }
  std::span<const std::string> keys() const { return keys_; }
  std::span<const declared_word> key_words() const { return key_words_; }
  philox_counter* random() const { return random_; }  // null: the body draws none

  // The first thing that two signatures of the same work declare differently, for a refusal; empty
  // when they declare the same.
  std::string difference(const signature& other) const;

  // Throws usage_error, naming the step, the input and what was expected, unless `given` binds each
  // input that is not optional, and none twice, with its dtype and a shape of its pattern.
  // Allocates only to refuse.
  void check(bindings given) const;

 private:
  friend class step;
  void record_anew();
  void claim(const std::string& name);
  declared_word word_of(std::function<std::uint64_t()> read);
  declared_word word_of(const std::shared_ptr<version_counter::count>& count);
  void check_output(const binding& b, std::uint64_t& bound) const;

  std::string name_;
  std::string work_;
  signature_id id_;
  signature_id recorded_as_ = id_;
  philox_counter* random_ = nullptr;
  std::vector<std::string> names_;
  std::vector<declared_input> inputs_;
  std::vector<declared_output> outputs_;
  std::vector<declared_write> writes_;
  std::vector<declared_use> uses_;
  std::vector<declared_fact> facts_;
  std::vector<declared_word> fact_words_;
  std::vector<std::string> keys_;
  std::vector<declared_word> key_words_;
  std::vector<std::shared_ptr<const void>> held_;  // what the words read
};

}  // namespace reprise
