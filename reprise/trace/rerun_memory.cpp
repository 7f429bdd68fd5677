#include "reprise/trace/rerun_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <new>

namespace reprise {

namespace {

// How large each stretch of host memory is: as far as anything reaches into it.
std::map<std::uint64_t, std::uint64_t> host_sizes(const trace& what) {
  std::map<std::uint64_t, std::uint64_t> sizes;
  for (const traced_call& call : what.calls) {
    if ((fields_of(call.kind) & has_work) == 0) continue;
    for (const traced_range& range : ranges_of(call.work)) {
      if (range.space != memory_space::host) continue;
      std::uint64_t& size = sizes[range.number];
      const std::uint64_t end = range.offset + range.bytes;
      if (end >= range.offset) size = std::max(size, end);  // a wrong trace may wrap around
    }
  }
  return sizes;
}

}  // namespace

rerun_memory::rerun_memory(const trace& what, std::uint64_t most_bytes) : left_{most_bytes} {
  for (const auto& [number, bytes] : host_sizes(what)) {
    if (!has_room(bytes)) continue;
    auto& begin =
        owned_.emplace_back(new (std::nothrow) std::byte[std::max<std::size_t>(bytes, 1)]{});
    if (begin == nullptr) continue;
    left_ -= bytes;
    host_[number] = {begin.get(), bytes, memory_kind::pinned, 0};
  }
}

void rerun_memory::born(block_number number, std::byte* begin, std::uint64_t bytes,
                        memory_kind kind) {
  row& at = blocks_[static_cast<std::uint64_t>(number)];
  if (at.begin != nullptr && at.released_by == 0) replaced_.push_back(at);
  at = {begin, bytes, kind, 0};
  left_ -= bytes;
}

rerun_memory::ended rerun_memory::release(block_number number, std::size_t call) {
  const auto found = blocks_.find(static_cast<std::uint64_t>(number));
  if (found == blocks_.end()) {
    return {nullptr,
            {},
            fmt::format("block {} was never allocated; release what allocate gave",
                        static_cast<std::uint64_t>(number))};
  }
  row& at = found->second;
  if (at.released_by != 0) {
    return {nullptr, at.kind,
            fmt::format("block {} was released by call {} already; release it once", found->first,
                        at.released_by)};
  }
  at.released_by = call;
  left_ += at.bytes;
  ++lives_ended_;
  return {at.begin, at.kind, {}};
}

std::vector<rerun_memory::ended> rerun_memory::release_all() {
  for (const auto& [number, at] : blocks_) {
    if (at.released_by == 0) replaced_.push_back(at);
  }
  blocks_.clear();
  std::vector<ended> all;
  for (const row& at : replaced_) all.push_back({at.begin, at.kind, {}});
  replaced_.clear();
  return all;
}

const rerun_memory::row* rerun_memory::find(const traced_range& range) const {
  const auto& rows = range.space == memory_space::block ? blocks_ : host_;
  const auto found = rows.find(range.number);
  return found == rows.end() ? nullptr : &found->second;
}

std::optional<range_fault> rerun_memory::fault_of(const traced_range& range) const {
  if (range.space == memory_space::null) return std::nullopt;  // what a device refuses by itself
  const std::string_view space = range.space == memory_space::block ? "block" : "host memory";
  const row* const at = find(range);
  if (at == nullptr) {
    return range_fault{difference_kind::dead_memory,
                       fmt::format("{} {} is not there: it was never allocated, or most_bytes did "
                                   "not last",
                                   space, range.number)};
  }
  if (at->released_by != 0) {
    return range_fault{difference_kind::dead_memory,
                       fmt::format("{} {} was released by call {}; release it after its last use",
                                   space, range.number, at->released_by)};
  }
  if (range.offset > at->bytes || range.bytes > at->bytes - range.offset) {
    return range_fault{difference_kind::beyond_memory,
                       fmt::format("{} bytes from {} reach past the end of {} {}, which has {}; "
                                   "touch less, or allocate more",
                                   range.bytes, range.offset, space, range.number, at->bytes)};
  }
  return std::nullopt;
}

std::byte* rerun_memory::address_of(const traced_range& range) const {
  if (range.space == memory_space::null) return nullptr;
  return find(range)->begin + range.offset;
}

std::vector<traced_range> ranges_of(const traced_work& what) {
  std::vector<traced_range> all;
  for (const traced_access& one : what.accesses) all.push_back(one.where);
  if (what.kind == work_kind::copy) all.push_back(what.from);
  if (what.kind == work_kind::copy || what.kind == work_kind::fill) all.push_back(what.to);
  return all;
}

namespace {

constexpr int pattern = 0xa5;

// Reads what is read and writes what is written. The sum goes where the compiler cannot see that
// nobody wants it.
void make(const touch* touches) {
  static std::atomic<unsigned> seen{0};
  for (std::size_t i = 1; i <= touches[0].bytes; ++i) {
    const touch& one = touches[i];
    if (one.writes) {
      std::memset(one.begin, pattern, one.bytes);
      continue;
    }
    unsigned sum = 0;
    for (std::size_t at = 0; at < one.bytes; ++at) sum += std::to_integer<unsigned>(one.begin[at]);
    seen.fetch_add(sum, std::memory_order_relaxed);
  }
}

void kernel_body(void*, const std::byte* arguments) {
  make(std::launder(reinterpret_cast<const touch*>(arguments)));
}

}  // namespace

rerun_work::rerun_work(const traced_work& traced, const rerun_memory& memory, event_id event) {
  touches_.emplace_back();
  for (const traced_access& one : traced.accesses) {
    std::byte* const begin = memory.address_of(one.where);
    accesses_.push_back({begin, one.where.bytes, one.writes});
    if (begin != nullptr) touches_.push_back({begin, one.where.bytes, one.writes});
  }
  touches_[0].bytes = touches_.size() - 1;
  what_.kind = traced.kind;
  what_.label = traced.label;
  what_.accesses = accesses_;
  what_.place = std::source_location::current();
  what_.event = event;
  switch (traced.kind) {
    case work_kind::kernel:
      what_.kernel = {&kernel_body,
                      reinterpret_cast<const std::byte*>(touches_.data()),
                      touches_.size() * sizeof(touch),
                      {}};
      break;
    case work_kind::copy:
      what_.copy = {memory.address_of(traced.to), memory.address_of(traced.from),
                    std::min(traced.from.bytes, traced.to.bytes)};
      break;
    case work_kind::fill:
      what_.fill = {memory.address_of(traced.to), traced.to.bytes, 0xa5a5a5a5u,
                    traced.pattern_bytes};
      break;
    case work_kind::host_call:
      on_host_ = [touches = touches_] { make(touches.data()); };
      what_.on_host = &on_host_;
      break;
    case work_kind::external:
      on_stream_ = [touches = touches_](void*) { make(touches.data()); };
      what_.on_stream = &on_stream_;
      break;
    case work_kind::empty:
    case work_kind::event_record:
    case work_kind::event_wait: break;
  }
}

}  // namespace reprise
