// A sink by what a person types: "run1", "clickhouse://[USER:PASSWORD@]HOST:PORT/DB", "count:".
#pragma once

#include <memory>
#include <string_view>

#include "reprise/records/record_sink.hpp"

namespace reprise {

// The sink is not open yet: a sink_queue or a sink_multiplexer does that. Throws usage_error, one
// line, for what is no sink (sink_address.hpp), and where this build lacks the library for it.
std::unique_ptr<record_sink> open_sink(std::string_view where);

}  // namespace reprise
