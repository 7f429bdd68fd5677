#include "reprise/formats/json_events.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "reprise/formats/printable.hpp"

namespace reprise::formats {

namespace {

// What nlohmann's parser calls (its SAX interface). The parser keeps its own stack on the heap, so
// depth costs no stack here either. Every call returns whether to go on.
//
// Invariant: for each open object or array, path_ has the key of its next member and keys_ the keys
// that came so far (of an array: "" and none). After a call returned false, fault_ says why.
class event_maker {
 public:
  explicit event_maker(const std::function<void(const json_event&)>& on_event)
      : on_event_{on_event} {}

  bool null() { return emit({path_, json_kind::other}); }
  bool boolean(bool) { return emit({path_, json_kind::other}); }
  bool number_integer(std::int64_t) { return emit({path_, json_kind::other}); }
  bool number_float(double, const std::string&) { return emit({path_, json_kind::other}); }
  bool number_unsigned(std::uint64_t value) {
    return emit({.path = path_, .kind = json_kind::natural, .natural = value});
  }
  bool string(const std::string& value) {
    return emit({.path = path_, .kind = json_kind::text, .text = value});
  }
  bool binary(const nlohmann::json::binary_t&) {  // there is no such thing in JSON text
    fault_ = json_fault{.why = json_fault::reason::not_json};
    return false;
  }

  bool start_object(std::size_t) { return start(json_kind::object); }
  bool start_array(std::size_t) { return start(json_kind::array); }
  bool end_object() { return end(); }
  bool end_array() { return end(); }

  bool key(const std::string& name) {
    path_.back() = name;
    if (keys_.back().insert(name).second) return true;
    fault_ = json_fault{.why = json_fault::reason::key_twice, .path = path_};
    return false;
  }

  bool parse_error(std::size_t byte, const std::string&, const nlohmann::json::exception&) {
    fault_ = json_fault{.why = json_fault::reason::not_json, .byte = byte};
    return false;
  }

  std::optional<json_fault> take_fault() { return std::move(fault_); }

 private:
  bool emit(const json_event& event) {
    on_event_(event);
    return true;
  }

  bool start(json_kind kind) {
    if (path_.size() == max_json_depth) {
      fault_ = json_fault{.why = json_fault::reason::too_deep};
      return false;
    }
    emit({path_, kind});
    path_.emplace_back();
    keys_.emplace_back();
    return true;
  }

  bool end() {
    path_.pop_back();
    keys_.pop_back();
    return emit({path_, json_kind::end});
  }

  const std::function<void(const json_event&)>& on_event_;
  std::vector<std::string> path_;
  std::vector<std::set<std::string>> keys_;  // ordered: no text can make its look-ups slow
  std::optional<json_fault> fault_;
};

}  // namespace

std::string describe(const json_fault& fault) {
  switch (fault.why) {
    case json_fault::reason::not_utf8: return fmt::format("is not UTF-8 at byte {}", fault.byte);
    case json_fault::reason::not_json: return fmt::format("is not JSON at byte {}", fault.byte);
    case json_fault::reason::key_twice:
      return fmt::format("has the key {} twice", quoted_name(fault.path.back()));
    case json_fault::reason::too_deep:
      return fmt::format("is nested deeper than {}", max_json_depth);
  }
  return "cannot be read";
}

std::optional<json_fault> read_json(std::string_view text,
                                    const std::function<void(const json_event&)>& on_event) {
  if (const std::size_t good = well_formed_bytes(text); good != text.size()) {
    return json_fault{.why = json_fault::reason::not_utf8, .byte = good + 1};
  }
  // nlohmann takes a zero byte for the end of the text and would never look at what follows it.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return json_fault{.why = json_fault::reason::not_json, .byte = zero + 1};
  }
  event_maker maker{on_event};
  nlohmann::json::sax_parse(text, &maker);
  return maker.take_fault();
}

}  // namespace reprise::formats
