// Producers and their publisher on a stream, captured or not: the same launches for both. For this
// room's .cpp files.
#pragma once

#include "reprise/kernel/launch.hpp"
#include "reprise/tap/publish_taken.hpp"
#include "reprise/tap/take_rows.hpp"
#include "reprise/tap/tap_core.hpp"

namespace reprise {

// `words`: the plan's on the device; `taken`: this node's own word.
inline node_id launch_producer(site at, const ring_memory& ring, const tapped_point& one,
                               const tensor_ref& what, view<std::uint64_t> words,
                               view<std::uint64_t> taken, std::size_t index) {
  const view<std::uint8_t> source{reinterpret_cast<std::uint8_t*>(what.data), what.bytes()};
  const std::int64_t* const count = one.rows.count();
  const view<const std::int64_t> limit{count, count == nullptr ? std::size_t{0} : std::size_t{1}};
  return launch(at, take_rows, read<std::uint8_t>{source}, read<std::int64_t>{limit},
                read<std::uint64_t>{words}, write<std::uint8_t>{ring.payload()},
                write<std::uint64_t>{taken}, index, one.id, one.row_bytes);
}

// Behind all producers: `taken` has the word of each.
inline node_id launch_publisher(site at, const ring_memory& ring, view<std::uint64_t> words,
                                view<std::uint64_t> taken) {
  return launch(at, publish_taken, read<std::uint64_t>{words}, inout<std::uint64_t>{taken},
                write<std::uint64_t>{ring.words()});
}

// The first `count` words of a plan, in the order of the stream.
inline void upload_words(site at, const std::uint64_t* from, std::size_t count,
                         view<std::uint64_t> to) {
  copy_bytes(at, reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to.data()),
             count * sizeof(std::uint64_t));
}

}  // namespace reprise
