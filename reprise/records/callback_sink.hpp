// A C++ function as a sink: it is called with each record, in order, on the thread of the queue.
#pragma once

#include <functional>
#include <memory>

#include "reprise/records/record_sink.hpp"

namespace reprise {

// The record is good during the call. Where the function throws, that record was not taken and is
// tried again as the queue's options say; those before it are not called with again. An exception
// that is a sink_error keeps its trouble.
std::unique_ptr<record_sink> callback_sink(std::function<void(const tap_record&)> call);

}  // namespace reprise
