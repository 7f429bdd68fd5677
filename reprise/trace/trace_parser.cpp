// The text of a trace read back: any bytes may come, and what is not exactly what trace_text()
// writes is refused with its line.
#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "reprise/base/error.hpp"
#include "reprise/trace/trace_file.hpp"
#include "reprise/trace/trace_words.hpp"

namespace reprise {

namespace {

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

// One line, read from the left.
class line_parser {
 public:
  line_parser(std::string_view line, std::string_view name, std::uint64_t number)
      : left_{line}, name_{name}, number_{number} {}

  [[noreturn]] void refuse(std::string_view what, std::string_view remedy) const {
    throw usage_error{fmt::format("{}, line {}: {}; {}", name_, number_, what, remedy)};
  }
  [[noreturn]] void refuse_rest(std::string_view expected) const {
    constexpr std::size_t shown = 24;
    refuse(fmt::format("{} is expected, and {:?} is there", expected, left_.substr(0, shown)),
           "undo the change, or take the trace again");
  }

  bool at_end() const { return left_.empty(); }
  bool begins(std::string_view text) const { return left_.starts_with(text); }
  bool skip(std::string_view text) {
    if (!begins(text)) return false;
    left_.remove_prefix(text.size());
    return true;
  }
  void expect(std::string_view text) {
    if (!skip(text)) refuse_rest(fmt::format("{:?}", text));
  }

  // Decimal, without zeros in front.
  std::uint64_t number(std::uint64_t most = no_limit) {
    std::uint64_t value = 0;
    const char* const begin = left_.data();
    const auto [end, failed] = std::from_chars(begin, begin + left_.size(), value);
    const auto digits = static_cast<std::size_t>(end - begin);
    const bool whole = failed == std::errc{} && (left_[0] != '0' || digits == 1);
    if (!whole || value > most) refuse_rest(fmt::format("a whole number up to {}", most));
    left_.remove_prefix(digits);
    return value;
  }

  template <class Id>
  Id numbered(std::string_view name) {
    expect(fmt::format(" {}=", name));
    return Id{number()};
  }

  bool yes_or_no() {
    if (skip("yes")) return true;
    if (!skip("no")) refuse_rest("yes or no");
    return false;
  }

  // Up to the next blank.
  std::string_view word() {
    const std::string_view found = left_.substr(0, left_.find(' '));
    left_.remove_prefix(found.size());
    return found;
  }

  std::string quoted() {
    expect("\"");
    std::string text;
    while (!skip("\"")) {
      if (skip("\\")) {
        text += escaped();
        continue;
      }
      if (left_.empty() || !is_printable(left_[0])) refuse_rest("printable text and its quote");
      text += left_[0];
      left_.remove_prefix(1);
    }
    return text;
  }

  traced_range range() {
    traced_range read;
    if (skip("null:")) {
      read.bytes = number();
      return read;
    }
    if (skip("block")) {
      read.space = memory_space::block;
    } else if (skip("host")) {
      read.space = memory_space::host;
    } else {
      refuse_rest("a range such as block1+0:64, host1+0:64 or null:8");
    }
    read.number = number();
    expect("+");
    read.offset = number();
    expect(":");
    read.bytes = number();
    return read;
  }

 private:
  // What follows a backslash. Only what cannot stand for itself is written so.
  char escaped() {
    for (const std::string_view plain : {"\"", "\\"}) {
      if (skip(plain)) return plain[0];
    }
    unsigned byte = 0;
    const std::string_view digits = left_.substr(0, 3);
    const auto upper = digits.find_first_of("ABCDEF");
    if (digits.size() == 3 && digits[0] == 'x' && upper == std::string_view::npos) {
      const char* const last = digits.data() + 3;
      const auto [end, failed] = std::from_chars(digits.data() + 1, last, byte, 16);
      if (failed == std::errc{} && end == last && !is_printable(static_cast<char>(byte))) {
        left_.remove_prefix(3);
        return static_cast<char>(byte);
      }
    }
    refuse_rest("\\\", \\\\ or \\xHH of an unprintable byte");
  }

  std::string_view left_;
  std::string_view name_;
  std::uint64_t number_;
};

work_kind parse_work_kind(line_parser& line) {
  line_parser ahead = line;
  const std::string_view word = ahead.word();
  for (std::size_t i = 0; i < work_kinds; ++i) {
    const auto kind = static_cast<work_kind>(i);
    if (word != word_of(kind)) continue;
    line = ahead;
    return kind;
  }
  line.refuse_rest("a kind of work such as kernel or host_call");
}

traced_work parse_work(line_parser& line) {
  traced_work what;
  line.expect(" work=");
  what.kind = parse_work_kind(line);
  line.expect(" label=");
  what.label = line.quoted();
  if (has_from(what.kind)) {
    line.expect(" from=");
    what.from = line.range();
  }
  if (has_to(what.kind)) {
    line.expect(" to=");
    what.to = line.range();
  }
  if (has_pattern(what.kind)) {
    line.expect(" pattern=");
    what.pattern_bytes = static_cast<std::uint8_t>(line.number(255));
  }
  if (names_event(what.kind)) what.event = line.numbered<event_id>("event");
  for (;;) {
    const bool writes = line.skip(" writes=");
    if (!writes && !line.skip(" reads=")) return what;
    what.accesses.push_back({line.range(), writes});
  }
}

std::vector<node_id> parse_nodes(line_parser& line) {
  std::vector<node_id> nodes;
  line.expect(" nodes=[");
  if (line.skip("]")) return nodes;
  do {
    nodes.push_back(node_id{line.number()});
  } while (line.skip(","));
  line.expect("]");
  return nodes;
}

call_kind parse_kind(line_parser& line) {
  line_parser ahead = line;
  const std::string_view word = ahead.word();
  for (std::size_t i = 0; i < call_kinds; ++i) {
    const auto kind = static_cast<call_kind>(i);
    if (word != name_of(kind)) continue;
    line = ahead;
    return kind;
  }
  line.refuse_rest("a call of the seam such as submit or launch");
}

memory_kind parse_memory(line_parser& line) {
  line.expect(" memory=");
  for (const memory_kind kind : {memory_kind::device, memory_kind::pinned}) {
    if (line.skip(word_of(kind))) return kind;
  }
  line.refuse_rest("device or pinned");
}

failure parse_failure(line_parser& line) {
  for (std::size_t i = 1; i < failures; ++i) {
    const auto how = static_cast<failure>(i);
    if (line.skip(name_of(how))) return how;
  }
  line.refuse_rest("a kind of error such as device_error");
}

traced_call parse_call(line_parser& line) {
  traced_call call;
  line.expect("t");
  call.thread = static_cast<std::uint32_t>(line.number(std::numeric_limits<std::uint32_t>::max()));
  line.expect(" ");
  call.kind = parse_kind(line);
  const std::uint32_t fields = fields_of(call.kind);
  const auto has = [&](call_field field) { return (fields & field) != 0; };
  if (has(has_memory)) call.memory = parse_memory(line);
  if (has(has_bytes)) call.bytes = line.numbered<std::uint64_t>("bytes");
  if (has(has_block)) call.block = line.numbered<block_number>("block");
  if (has(has_executable)) call.executable = line.numbered<executable_id>("executable");
  if (has(has_graph)) call.graph = line.numbered<graph_id>("graph");
  if (has(has_nodes)) call.nodes = parse_nodes(line);
  if (has(has_stream)) call.stream = line.numbered<stream_id>("stream");
  if (has(has_event)) call.event = line.numbered<event_id>("event");
  if (has(has_work)) call.work = parse_work(line);
  if (has(has_node)) call.node = line.numbered<node_id>("node");
  if (has(has_place)) call.place = line.numbered<place_number>("place");
  if (has(has_on)) {
    line.expect(" on=");
    call.on = line.yes_or_no();
  }
  if (has(has_made)) call.made = line.numbered<graph_id>("made");
  if (has(has_answer)) {
    line.expect(" answer=");
    call.answer = line.yes_or_no();
  }
  if (has(has_count)) call.count = line.numbered<std::uint64_t>("count");
  if (line.skip(" at=")) {
    call.at.file = line.quoted();
    line.expect(":");
    call.at.line =
        static_cast<std::uint32_t>(line.number(std::numeric_limits<std::uint32_t>::max()));
    if (call.at == traced_line{})
      line.refuse("a source line without name and number", "leave it out");
  }
  if (line.skip(" failed=")) call.failed = parse_failure(line);
  if (!line.at_end()) line.refuse_rest("the end of the line");
  return call;
}

device_kind parse_bodies(line_parser& line) {
  for (const device_kind kind : {device_kind::cpu, device_kind::cuda}) {
    if (line.skip(name_of(kind))) return kind;
  }
  line.refuse_rest("cpu or cuda");
}

// The lines of a text, each ended by a newline.
class lines {
 public:
  lines(std::string_view text, std::string_view name) : left_{text}, name_{name} {}

  bool at_end() const { return left_.empty(); }
  line_parser next() {
    const auto end = left_.find('\n');
    line_parser line{left_.substr(0, end), name_, ++number_};
    if (end == std::string_view::npos) {
      line.refuse("the text ends before its last line, `end calls=…`, is over",
                  "the file was cut: copy it whole, or take the trace again");
    }
    left_.remove_prefix(end + 1);
    return line;
  }

 private:
  std::string_view left_;
  std::string_view name_;
  std::uint64_t number_ = 0;
};

}  // namespace

trace parse_trace(std::string_view text, std::string_view name) {
  lines all{text, name};
  trace read;
  line_parser line = all.next();
  if (!line.skip(first_line) || !line.at_end()) {
    line.refuse_rest(fmt::format("{:?}, the first line of a trace of this version", first_line));
  }
  line = all.next();
  line.expect("device ");
  read.device = line.quoted();
  line.expect(" ");
  read.bodies = parse_bodies(line);
  if (!line.at_end()) line.refuse_rest("the end of the line");
  for (;;) {
    line = all.next();
    if (line.skip("end calls=")) break;
    read.calls.push_back(parse_call(line));
  }
  if (line.number() != read.calls.size()) {
    line.refuse(fmt::format("{} calls are there, and the line says otherwise", read.calls.size()),
                "lines were lost or added: copy the file whole, or take the trace again");
  }
  line.expect(" left_out=");
  read.left_out = line.number();
  if (!line.at_end()) line.refuse_rest("the end of the line");
  if (!all.at_end())
    all.next().refuse("a line after the end", "take it out, or take the trace again");
  return read;
}

}  // namespace reprise
