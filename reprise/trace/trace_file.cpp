#include "reprise/trace/trace_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "reprise/base/error.hpp"
#include "reprise/trace/trace_words.hpp"

namespace reprise {

std::string word_of(work_kind kind) {
  std::string word{name_of(kind)};
  for (char& c : word) {
    if (c == ' ') c = '_';
  }
  return word;
}

namespace {

using out_text = std::back_insert_iterator<std::string>;

std::string in_quotes(std::string_view text) {
  std::string made = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      made += '\\';
      made += c;
    } else if (is_printable(c)) {
      made += c;
    } else {
      fmt::format_to(out_text{made}, "\\x{:02x}", byte);
    }
  }
  return made + '"';
}

std::string range_text(const traced_range& range) {
  switch (range.space) {
    case memory_space::null: return fmt::format("null:{}", range.bytes);
    case memory_space::block:
      return fmt::format("block{}+{}:{}", range.number, range.offset, range.bytes);
    case memory_space::host:
      return fmt::format("host{}+{}:{}", range.number, range.offset, range.bytes);
  }
  return {};
}

void append_work(std::string& to, const traced_work& what) {
  fmt::format_to(out_text{to}, " work={} label={}", word_of(what.kind), in_quotes(what.label));
  if (has_from(what.kind)) to += " from=" + range_text(what.from);
  if (has_to(what.kind)) to += " to=" + range_text(what.to);
  if (has_pattern(what.kind)) to += fmt::format(" pattern={}", what.pattern_bytes);
  if (names_event(what.kind)) {
    to += fmt::format(" event={}", static_cast<std::uint64_t>(what.event));
  }
  for (const traced_access& one : what.accesses) {
    to += one.writes ? " writes=" : " reads=";
    to += range_text(one.where);
  }
}

void append_nodes(std::string& to, const std::vector<node_id>& nodes) {
  to += " nodes=[";
  std::string_view between = "";
  for (const node_id node : nodes) {
    fmt::format_to(out_text{to}, "{}{}", between, static_cast<std::uint64_t>(node));
    between = ",";
  }
  to += ']';
}

void append_call(std::string& to, const traced_call& call) {
  const std::uint32_t fields = fields_of(call.kind);
  const auto number = [&](call_field field, std::string_view name, auto value) {
    if ((fields & field) == 0) return;
    fmt::format_to(out_text{to}, " {}={}", name, static_cast<std::uint64_t>(value));
  };
  const auto yes_or_no = [&](call_field field, std::string_view name, bool value) {
    if ((fields & field) == 0) return;
    fmt::format_to(out_text{to}, " {}={}", name, value ? "yes" : "no");
  };
  fmt::format_to(out_text{to}, "t{} {}", call.thread, name_of(call.kind));
  if ((fields & has_memory) != 0) to += fmt::format(" memory={}", word_of(call.memory));
  number(has_bytes, "bytes", call.bytes);
  number(has_block, "block", call.block);
  number(has_executable, "executable", call.executable);
  number(has_graph, "graph", call.graph);
  if ((fields & has_nodes) != 0) append_nodes(to, call.nodes);
  number(has_stream, "stream", call.stream);
  number(has_event, "event", call.event);
  if ((fields & has_work) != 0) append_work(to, call.work);
  number(has_node, "node", call.node);
  number(has_place, "place", call.place);
  yes_or_no(has_on, "on", call.on);
  number(has_made, "made", call.made);
  yes_or_no(has_answer, "answer", call.answer);
  number(has_count, "count", call.count);
  if (call.at != traced_line{}) {
    fmt::format_to(out_text{to}, " at={}:{}", in_quotes(call.at.file), call.at.line);
  }
  if (call.failed != failure::none) to += fmt::format(" failed={}", name_of(call.failed));
  to += '\n';
}

}  // namespace

std::string trace_text(const trace& from) {
  std::string text =
      fmt::format("{}\ndevice {} {}\n", first_line, in_quotes(from.device), name_of(from.bodies));
  for (const traced_call& call : from.calls) append_call(text, call);
  text += fmt::format("end calls={} left_out={}\n", from.calls.size(), from.left_out);
  return text;
}

void write_trace(const trace& from, const std::filesystem::path& to) {
  std::ofstream file{to, std::ios::binary};
  file << trace_text(from);
  file.close();
  if (file.fail()) {
    throw usage_error{fmt::format(
        "trace {:?}: the file cannot be written; give a name in a folder with room and permission",
        to.string())};
  }
}

trace read_trace(const std::filesystem::path& from) {
  std::ifstream file{from, std::ios::binary};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  if (!file.is_open() || file.bad() || std::filesystem::is_directory(from)) {
    throw usage_error{fmt::format(
        "trace {:?}: the file cannot be read; give one that write_trace wrote", from.string())};
  }
  return parse_trace(text, from.filename().string());
}

}  // namespace reprise
