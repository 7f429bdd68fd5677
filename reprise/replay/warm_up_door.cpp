#include "reprise/replay/warm_up_door.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"

namespace reprise {

namespace {

// What lies behind a word is no part of what the word is a part of.
bool covers(const declared_write& declared, const access& touched) {
  const auto* begin = static_cast<const std::byte*>(touched.begin);
  return !touched.indirect && begin >= declared.where.data &&
         begin + touched.bytes <= declared.where.data + declared.where.bytes();
}

}  // namespace

warm_up_door::warm_up_door(const signature& declared, const run_memory& own, pool& copies,
                           site side, bool saves_overwrites)
    : declared_{declared},
      own_{own},
      copies_{copies},
      stream_{side.stream},
      place_{side.place},
      saves_overwrites_{saves_overwrites},
      watch_{[this](stream_ref stream, const work& what) { see(stream, what); }} {}

void warm_up_door::see(stream_ref stream, const work& what) {
  if (ours_) return;
  if (!(stream == stream_)) branches_.insert(stream.id());
  for (const access& touched : what.accesses) {
    if (touched.writes && touched.bytes != 0) pass(what, touched);
  }
}

void warm_up_door::pass(const work& what, const access& touched) {
  if (touched.indirect) refuse_input(what, touched);
  // A word of the run itself says where; what it says there, the caller of the run has put in.
  if (own_.contains(touched.begin, bytes_at_begin(touched))) return;
  for (const declared_write& declared : declared_.writes()) {
    if (!covers(declared, touched)) continue;
    if (declared.restored || saves_overwrites_) save(declared);
    return;
  }
  if (REPRISE_MUTANT(unnamed_writes_pass_the_door)) return;
  throw usage_error{
      fmt::format("step '{}': {} '{}' writes {} bytes that outlive the step and that its "
                  "signature does not name; name them as state or overwrites, or use "
                  "the run's scratch",
                  declared_.name(), name_of(what.kind), what.label, touched.bytes)};
}

void warm_up_door::refuse_input(const work& what, const access& touched) const {
  if (layout_ == nullptr || REPRISE_MUTANT(direct_inputs_are_written)) return;
  for (std::size_t slot = 0; slot < layout_->inputs(); ++slot) {
    if (!layout_->is_direct(slot) || staged_ + layout_->offset(slot) != touched.begin) continue;
    throw usage_error{fmt::format(
        "step '{}': {} '{}' writes to the direct input '{}', which is the caller's; write to an "
        "output, or name that memory as state",
        declared_.name(), name_of(what.kind), what.label, declared_.inputs()[slot].name)};
  }
}

void warm_up_door::save(const declared_write& state) {
  if (std::ranges::any_of(saved_, [&](const saved& s) { return s.state == &state; })) return;
  block copy{copies_, state.where.bytes(), stream_, place_};
  ours_ = true;
  copy_bytes({stream_, place_}, state.where.data, copy.data(), copy.bytes());
  ours_ = false;
  saved_.push_back({&state, std::move(copy)});
}

void warm_up_door::restore() {
  ours_ = true;
  for (const stream_id branch : branches_) {
    stream_.device().state().order_after(branch, stream_, place_);
  }
  branches_.clear();
  while (!saved_.empty()) {
    const saved& last = saved_.back();
    copy_bytes({stream_, place_}, last.copy.data(), last.state->where.data, last.copy.bytes());
    saved_.pop_back();
  }
  ours_ = false;
}

}  // namespace reprise
