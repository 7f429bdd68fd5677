// JSON text as a stream of events, read strictly: what a lenient reader lets pass is a fault here.
//
// Called by the readers of headers and indexes, which know what they expect at each path and stop
// at the first thing else. Nothing is built from the text and nothing recurses: memory is the
// deepest path and the keys of the objects that are open, whatever the text holds.
// Time is O(bytes log keys). Safe from any thread; one call uses no state of another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::formats {

// Objects and arrays within one another; deeper text is a fault.
inline constexpr std::size_t max_json_depth = 64;

enum class json_kind {
  object,   // one opens
  array,    // one opens
  end,      // the object or array at this path closes
  text,     // a string
  natural,  // a whole number in [0, 2^64), written without sign, point or exponent
  other,    // any other number, true, false, null
};

struct json_event {
  std::span<const std::string> path;  // keys from the root; the elements of an array have key ""
  json_kind kind;
  std::string_view text{};    // kind text: its characters, escapes resolved
  std::uint64_t natural = 0;  // kind natural
};

struct json_fault {
  enum class reason { not_utf8, not_json, key_twice, too_deep };
  reason why;
  std::size_t byte = 0;             // not_utf8, not_json: counted from 1
  std::vector<std::string> path{};  // key_twice: where, the key last
};

// "is not JSON at byte 17", to stand behind the name of the thing that was read.
std::string describe(const json_fault& fault);

// Calls `on_event` for everything in `text`, in order, and returns what ended the reading early,
// if anything did. An exception from `on_event` ends it too, and passes through.
std::optional<json_fault> read_json(std::string_view text,
                                    const std::function<void(const json_event&)>& on_event);

}  // namespace reprise::formats
