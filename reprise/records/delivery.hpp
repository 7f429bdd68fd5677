// Handing one batch to one sink, whatever the sink does: again after a pause, then in smaller
// pieces, then not at all. For this room's .cpp files: the thread of a sink_queue calls it.
//
// Every record of the batch is told of exactly once, as delivered or as lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "reprise/records/record_sink.hpp"

namespace reprise::records {

struct retry_rule {
  int attempts = 5;  // of a whole batch, before it is taken apart or lost
  std::int64_t first_pause_us = 50'000;
  std::int64_t longest_pause_us = 5'000'000;  // each pause is twice the one before, up to this
};

struct delivery_events {
  std::function<void(std::span<const tap_record>)> delivered;
  std::function<void(std::span<const tap_record>, const std::string& why)> lost;
  std::function<void(std::int64_t pause_us)> again;  // pauses, then returns
};

// False: the sink takes nothing any more, and is to be given nothing.
bool deliver(record_sink& to, std::span<const tap_record> batch, const retry_rule& rule,
             const delivery_events& tell);

// The pause after so many failures in a row, from 1.
std::int64_t pause_us(const retry_rule& rule, int failures);

}  // namespace reprise::records
