// How records and blocks end, one by one or when a capture that held them back is over. Nothing
// throws: failures go to the error handler. After the device was lost CUDA is not called: it would
// answer each destroy with the same fault. For this room's .cpp files.
#pragma once

#include <list>

#include "reprise/cuda/core.hpp"

namespace reprise::cuda {

void close(core& shared, stream_record& stream) noexcept;  // waits for its work first
void close(core& shared, event_record& event) noexcept;
void close(core& shared, graph_record& graph) noexcept;
void close(core& shared, passed_mark& mark) noexcept;
void close(core& shared, executable_record& executable) noexcept;
void free_block(core& shared, const std::byte* block, memory_kind kind) noexcept;

// Whether what was enqueued before the mark is done; without waiting, or after it.
bool has_passed(core& shared, passed_mark& mark, bool wait) noexcept;

// Waits for the work of a stream that is in no capture.
void drain(core& shared, stream_record& stream) noexcept;

template <class Record>
void close_each(core& shared, std::list<Record> records) noexcept {
  for (Record& record : records) close(shared, record);
}

inline void free_each(core& shared, const block_table::blocks& blocks) noexcept {
  for (const auto& [begin, info] : blocks) free_block(shared, begin, info.kind);
}

}  // namespace reprise::cuda
