#include "reprise/replay/touched_memory.hpp"

#include <fmt/format.h>

namespace reprise {

namespace {

bool lies_in(const access& touched, const tensor_ref& named) {
  const auto* const begin = static_cast<const std::byte*>(touched.begin);
  return begin >= named.data && begin < named.data + named.bytes();
}

}  // namespace

touched_by_capture::touched_by_capture(const signature& declared, const run_memory& own,
                                       contract& terms)
    : declared_{declared},
      own_{own},
      terms_{terms},
      watch_{[this](stream_ref stream, const work& what) {
        if (stream.capturing()) see(stream.device(), what);
      }} {}

void touched_by_capture::see(device_ref device, const work& what) {
  for (const access& one : what.accesses) {
    const freed_watch::span where{static_cast<const std::byte*>(one.begin), bytes_at_begin(one)};
    if (one.bytes == 0 || own_.contains(where.begin, where.bytes) || terms_.knows(where)) continue;
    terms_.depends_on(device, where, name_of_span(what, one));
  }
}

std::string touched_by_capture::name_of_span(const work& by, const access& touched) const {
  for (const declared_write& write : declared_.writes()) {
    if (lies_in(touched, write.where)) return write.name;
  }
  for (const declared_use& use : declared_.uses()) {
    if (lies_in(touched, use.weight->value)) return use.name;
  }
  return fmt::format("memory that {} '{}' {}", name_of(by.kind), by.label,
                     touched.writes ? "writes" : "reads");
}

}  // namespace reprise
