// The handles of one kind in a re-run: by the numbers of the trace, and which of them live. For
// this room's .cpp files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace reprise {

// The handles of one kind: by the numbers of the trace, and which of them live.
template <class Id>
class handle_table {
 public:
  explicit handle_table(std::string_view thing) : thing_{thing} {}

  void put(Id number, Id made) {
    rows_[number] = {made, 0};
    live_.insert(made);
  }
  // A call that made it failed, which was told there.
  void put_none(Id number) { rows_[number] = {Id::none, 0}; }

  bool knows(Id number) const { return rows_.contains(number); }
  // The device's own, dead or not; `none` for one that was never made.
  Id operator[](Id number) const {
    const auto found = rows_.find(number);
    return found == rows_.end() ? Id::none : found->second.made;
  }
  // Empty, or what is wrong with using it.
  std::string fault_of(Id number) const {
    if (number == Id::none) return {};
    const auto found = rows_.find(number);
    const std::string name =
        std::string{thing_} + ' ' + std::to_string(static_cast<std::uint64_t>(number));
    if (found == rows_.end()) return name + " was never made; make it first";
    const std::size_t by = found->second.destroyed_by;
    if (by == 0) return {};
    return name + " was destroyed by call " + std::to_string(by) +
           "; destroy it after its last use";
  }

  // The device's own, to be destroyed now; `none`: there is nothing to destroy.
  Id end(Id number, std::size_t call) {
    const auto found = rows_.find(number);
    if (found == rows_.end() || found->second.destroyed_by != 0) return Id::none;
    found->second.destroyed_by = call;
    live_.erase(found->second.made);
    return found->second.made;
  }
  bool any_live() const { return !live_.empty(); }
  std::set<Id> take_live() { return std::exchange(live_, {}); }

 private:
  struct row {
    Id made = Id::none;
    std::size_t destroyed_by = 0;  // a call; 0: it lives
  };
  std::string_view thing_;
  std::unordered_map<Id, row> rows_;
  std::set<Id> live_;
};

}  // namespace reprise
