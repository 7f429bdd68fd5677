// What a step declares before it runs: inputs, outputs, what it updates and uses, and the facts
// under which a recording of it holds. Every name is written once and becomes a typed handle.
//
// A signature is built by one thread, then given to a step and never changed.
#pragma once

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

// Moves when the thing it stands for changes: weights, an adapter, a table.
class version_counter {
 public:
  void bump() noexcept { ++value_; }
  std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 1;
};

// A weight that steps use. Its address and its version are facts of every recording that uses it.
struct parameter {
  tensor_ref value;
  version_counter version;
};

// One input of one call: what is bound, and whether it lies in host memory.
struct binding {
  signature_id of = signature_id::none;
  int slot = -1;
  tensor_ref to;
  bool on_host = false;
};

// The bindings of one call, borrowed for its duration: `{x(a), y(b)}` or a span.
class bindings : public std::span<const binding> {
 public:
  bindings() = default;
  bindings(std::initializer_list<binding> list) : span{list.begin(), list.size()} {}
  bindings(std::span<const binding> list) : span{list} {}
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
    return bind(from, shape, false);
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
};

struct declared_output {
  std::string name;
  dtype type;
};

// Memory that outlives the step and that its body writes.
struct declared_write {
  std::string name;
  tensor_ref where;
  bool restored;  // state: put back after a warm-up; an overwrite is idempotent and is not
};

// One condition, read anew before each replay; under a nanosecond where it is a counter or address.
struct declared_fact {
  std::string name;
  std::uint64_t (*read)(const void* object);
  const void* object;
  std::string remedy;
};

class signature {
 public:
  explicit signature(std::string name);

  template <element T>
  input<T> in(std::string name, const dims& pattern) {
    return {add_input({std::move(name), dtype_of<T>, pattern}), id_, pattern};
  }
  template <element T>
  output<T> out(std::string name) {
    return {add_output({std::move(name), dtype_of<T>}), id_};
  }

  // Updated in place: snapshotted before a warm-up writes it, and put back.
  void state(std::string name, const tensor_ref& where);
  // Written with the same values however often the step runs on the same inputs, such as a cache
  // row at its position: not snapshotted.
  void overwrites(std::string name, const tensor_ref& where);
  // The parameter outlives the step.
  void uses(std::string name, const parameter& weight);
  // A change retires the recording. The counter outlives the step.
  void fact(std::string name, const version_counter& counter);
  void fact(std::string name, std::function<std::uint64_t()> read);

  // The body draws random numbers (step_scope::draws), from this counter. It outlives the step.
  void random(philox_counter& counter) { random_ = &counter; }

  signature_id id() const { return id_; }
  const std::string& name() const { return name_; }
  std::span<const declared_input> inputs() const { return inputs_; }
  std::span<const declared_output> outputs() const { return outputs_; }
  std::span<const declared_write> writes() const { return writes_; }
  std::span<const declared_fact> facts() const { return facts_; }
  philox_counter* random() const { return random_; }  // null: the body draws none

  // Throws usage_error, naming the step, the input and what was expected, unless `given` binds each
  // input exactly once with its dtype and a shape of its pattern. Allocates only to refuse.
  void check(bindings given) const;

 private:
  int add_input(declared_input declared);
  int add_output(declared_output declared);
  void claim(const std::string& name);

  std::string name_;
  signature_id id_;
  philox_counter* random_ = nullptr;
  std::vector<std::string> names_;
  std::vector<declared_input> inputs_;
  std::vector<declared_output> outputs_;
  std::vector<declared_write> writes_;
  std::vector<declared_fact> facts_;
  std::vector<std::shared_ptr<const std::function<std::uint64_t()>>> functions_;
};

}  // namespace reprise
