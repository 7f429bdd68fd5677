#include "scenarios/grad_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "reprise/base/error.hpp"

namespace reprise::scenarios {

namespace {

constexpr std::array<std::string_view, op_kinds> kind_names{"scaled",    "noisy",  "counted",
                                                            "rewinding", "joined", "remembering"};

struct letter {
  act what;
  char sign;
};
constexpr std::array<letter, 11> letters{{{act::forward, 'f'},
                                          {act::infer, 'i'},
                                          {act::again, 'a'},
                                          {act::backward, 'b'},
                                          {act::drop, 'd'},
                                          {act::spoil, 's'},
                                          {act::recall, 'm'},
                                          {act::update, 'u'},
                                          {act::span, '['},
                                          {act::recompute, '('},
                                          {act::end, ']'}}};

[[noreturn]] void refuse(std::string_view word, std::string_view remedy) {
  throw usage_error{fmt::format("schedule: '{}' is not understood; {}", word, remedy)};
}

int number_of(std::string_view text, std::string_view word) {
  int value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size() || value < 0) {
    refuse(word, "write a number there");
  }
  return value;
}

std::vector<std::string_view> parted(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(by), text.size());
    if (end != 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

void add_flag(scheduled& call, std::string_view flag, std::string_view word) {
  if (flag.starts_with("rows")) {
    call.rows = number_of(flag.substr(4), word);
    if (call.rows == 0) refuse(word, "an input has a row at least");
  } else if (flag == "alone") {
    call.alone = true;
  } else if (flag == "host") {
    call.on_host = true;
  } else if (flag == "into") {
    call.into = true;
  } else if (flag == "suspended") {
    call.suspended = true;
  } else if (flag == "other") {
    call.elsewhere = true;
  } else if (flag == "weights") {
    call.inputs = false;
  } else if (flag == "inputs") {
    call.weights = false;
  } else if (flag == "memory") {
    call.by_memory = true;
  } else if (flag == "tf32") {
    call.in_force.products = matrix_precision::tf32;
  } else if (flag == "bf16") {
    call.in_force.casts = cast_mode::bf16;
  } else {
    refuse(word, fmt::format("there is no '+{}'", flag));
  }
}

scheduled call_from(std::string_view word) {
  scheduled call;
  if (word == "reset") {
    call.what = act::reset;
    return call;
  }
  const auto found = std::ranges::find(letters, word.front(), &letter::sign);
  if (found == letters.end()) refuse(word, "calls begin with one of f i a b d s m u [ ( ]");
  call.what = found->what;
  const std::vector<std::string_view> parts = parted(word.substr(1), '+');
  if (call.what == act::end) {
    if (!parts.empty()) refuse(word, "']' stands alone");
    return call;
  }
  if (parts.empty()) refuse(word, "say of what it is");
  std::string_view numbers = parts.front();
  if (call.what == act::forward || call.what == act::infer) {
    const std::size_t dot = numbers.find('.');
    if (dot == std::string_view::npos) refuse(word, "a forward is f NUMBER . OP");
    call.op = number_of(numbers.substr(dot + 1), word);
    numbers = numbers.substr(0, dot);
  }
  (call.what == act::update ? call.op : call.id) = number_of(numbers, word);
  for (std::size_t i = 1; i < parts.size(); ++i) add_flag(call, parts[i], word);
  return call;
}

scheduled_op op_from(std::string_view text) {
  const std::vector<std::string_view> words = parted(text, ' ');
  if (words.empty()) refuse(text, "an op lies between two ';'");
  scheduled_op op;
  const auto kind = std::ranges::find(kind_names, words.front());
  if (kind == kind_names.end()) refuse(words.front(), "an op is one of the six of grad_ops.hpp");
  op.kind = static_cast<op_kind>(kind - kind_names.begin());
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "moved") {
      op.options.returned = gradients::moved;
    } else if (word.starts_with("keys=")) {
      op.options.keys = number_of(word.substr(5), word);
    } else if (word.starts_with("work=")) {
      op.work = number_of(word.substr(5), word);
    } else {
      op.options.conflict = conflict_from(word);
    }
  }
  return op;
}

}  // namespace

std::string_view name_of(op_kind kind) {
  return kind_names[static_cast<std::size_t>(kind)];
}

std::string text_of(const scheduled& call) {
  if (call.what == act::reset) return "reset";
  const auto found = std::ranges::find(letters, call.what, &letter::what);
  std::string text(1, found->sign);
  if (call.what == act::end) return text;
  text += std::to_string(call.what == act::update ? call.op : call.id);
  if (call.what == act::forward || call.what == act::infer) text += fmt::format(".{}", call.op);
  const auto flag = [&](bool is_there, std::string_view name) {
    if (is_there) text += fmt::format("+{}", name);
  };
  if (call.rows != scheduled{}.rows) text += fmt::format("+rows{}", call.rows);
  flag(call.alone, "alone");
  flag(call.on_host, "host");
  flag(call.into, "into");
  flag(call.suspended, "suspended");
  flag(call.elsewhere, "other");
  flag(!call.inputs, "weights");
  flag(!call.weights, "inputs");
  flag(call.by_memory, "memory");
  flag(call.in_force.products == matrix_precision::tf32, "tf32");
  flag(call.in_force.casts == cast_mode::bf16, "bf16");
  return text;
}

std::string text_of(const grad_schedule& of) {
  std::string text = fmt::format("seed {};", of.seed);
  for (const scheduled_op& op : of.ops) {
    text += fmt::format(" {} {}", name_of(op.kind), reprise::text_of(op.options.conflict));
    if (op.options.returned == gradients::moved) text += " moved";
    if (op.options.keys != 1) text += fmt::format(" keys={}", op.options.keys);
    if (op.work != 0) text += fmt::format(" work={}", op.work);
    text += ";";
  }
  for (const scheduled& call : of.calls) text += " " + text_of(call);
  return text;
}

grad_schedule schedule_from(std::string_view text) {
  const std::size_t last = text.rfind(';');
  if (last == std::string_view::npos) refuse(text, "a schedule is 'seed NUMBER; OPS; CALLS'");
  const std::vector<std::string_view> parts = parted(text.substr(0, last), ';');
  if (parts.empty()) refuse(text, "it begins with 'seed NUMBER'");
  const std::vector<std::string_view> first = parted(parts.front(), ' ');
  if (first.size() != 2 || first[0] != "seed")
    refuse(parts.front(), "it begins with 'seed NUMBER'");
  grad_schedule made;
  const auto [end, failed] =
      std::from_chars(first[1].data(), first[1].data() + first[1].size(), made.seed);
  if (failed != std::errc{} || end != first[1].data() + first[1].size()) {
    refuse(first[1], "write a number there");
  }
  for (std::size_t i = 1; i < parts.size(); ++i) made.ops.push_back(op_from(parts[i]));
  for (const std::string_view word : parted(text.substr(last + 1), ' ')) {
    made.calls.push_back(call_from(word));
  }
  for (const scheduled& call : made.calls) {
    const bool names_op =
        call.what == act::forward || call.what == act::infer || call.what == act::update;
    if (names_op && call.op >= static_cast<int>(made.ops.size())) {
      refuse(text_of(call), fmt::format("there are {} ops", made.ops.size()));
    }
  }
  return made;
}

}  // namespace reprise::scenarios
