// One line for people, now and then: retired recordings, refused captures, fallbacks.
//
// Counted always, logged once per reason: whoever logs has seen to that. The default writes
// "reprise: TEXT" to stderr. Thread safe.
#pragma once

#include <functional>
#include <string_view>

namespace reprise {

using log_sink = std::function<void(std::string_view line)>;

// Replaces the sink; an empty one restores the default. Returns the sink that was installed.
log_sink set_log_sink(log_sink sink);
void log_line(std::string_view line);

}  // namespace reprise
