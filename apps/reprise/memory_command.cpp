#include "apps/reprise/memory_command.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "apps/reprise/default_model.hpp"
#include "apps/reprise/memory_report.hpp"
#include "apps/reprise/output.hpp"
#include "apps/reprise/progress_line.hpp"
#include "apps/reprise/whole_number.hpp"
#include "reprise/base/error.hpp"
#include "reprise/platform/platform.hpp"
#include "workloads/memory/memory.hpp"

namespace reprise::app {

namespace {

using memory::memory_options;

// As they were typed, beside what goes into the options as it is.
struct command_line {
  std::string device = "auto";
  int threads = 0;
  std::string text;
  std::string storage = "f32";
  std::string rows = "stored";
  std::string conflict = "hold";
  memory_options options;
  output_options output;
};

dtype storage_from(const std::string& text) {
  for (const dtype one : {dtype::f32, dtype::bf16}) {
    if (text == name_of(one)) return one;
  }
  throw usage_error{fmt::format("--storage {:?}: give f32 or bf16", text)};
}

saved_rows rows_from(const std::string& text) {
  for (const saved_rows one : {saved_rows::as_stored, saved_rows::fp8, saved_rows::int4}) {
    if (text == name_of_rows(one)) return one;
  }
  throw usage_error{fmt::format("--saved-rows {:?}: give stored, fp8 or int4", text)};
}

memory_options options_of(const command_line& typed) {
  memory_options options = typed.options;
  options.storage = storage_from(typed.storage);
  options.rows = rows_from(typed.rows);
  options.conflict = conflict_from(typed.conflict);
  check(options);
  options.text = typed.text.empty()
                     ? default_text("workloads/memory/genesis.txt", "give --text FILE")
                     : std::filesystem::path{typed.text};
  return options;
}

void run(const command_line& typed, int& exit_code) {
  check_json_target(typed.output);
  const memory_options options = options_of(typed);
  check_json_spares(typed.output, {&options.text, 1}, "the file of --text");
  const device opened = open_device(typed.device, {.threads = typed.threads});
  std::FILE* const people = typed.output.people();
  progress_line progress{people, typed.output.quiet};
  const memory::memory_report report =
      memory::run_memory(opened, options, [&](std::int64_t done, float loss, memory::training&) {
        progress.show("training", static_cast<std::size_t>(done),
                      static_cast<std::size_t>(options.steps), fmt::format("loss {:.3f}", loss));
      });
  progress.clear();
  const memory_context context{std::string{opened.name()}};
  if (!typed.output.quiet) print_report(people, report, options, context);
  if (typed.output.json) write_json(typed.output, report_json(report, options, context));
  exit_code = exit_code_of(report.failure());
}

// What is no number is refused here, what is out of range by memory::check.
template <class Number>
void add_number(verb_ref verb, const char* name, Number& into, const char* what) {
  verb.add_option(name, into, fmt::format("{} [{}]", what, into))
      .option_text("N")
      .check(whole_number);
}

void add_model_options(verb_ref verb, command_line& t) {
  memory_options& o = t.options;
  add_number(verb, "--batch", o.batch, "streams of a micro-batch");
  add_number(verb, "--context", o.context, "bytes of a stream");
  add_number(verb, "--layers", o.layers, "with a memory of their own");
  add_number(verb, "--width", o.width, "of the model and of a memory's slots");
  add_number(verb, "--side", o.side, "a stream's memory has its square of slots");
  add_number(verb, "--writes", o.writes, "slots that a byte writes");
  add_number(verb, "--reads", o.reads, "slots that a byte reads");
  add_number(verb, "--key-width", o.key_width, "of half a key");
  add_number(verb, "--chunk", o.chunk, "bytes that are computed at once; for speed");
  verb.add_option("--storage", t.storage, "of memories [f32]").option_text("f32|bf16");
  verb.add_option("--saved-rows", t.rows, "what the backward finds of them [stored]")
      .option_text("stored|fp8|int4");
  verb.add_flag("--wide-bank-grad", o.wide_bank_grad,
                "gradients of memories in f32, whatever they are stored in");
}

void add_training_options(verb_ref verb, command_line& t) {
  memory_options& o = t.options;
  verb.add_option("--text", t.text, "what to train on [workloads/memory/genesis.txt]")
      .option_text("FILE")
      .check(not_empty);
  add_number(verb, "--steps", o.steps, "of training");
  add_number(verb, "--accumulate", o.accumulate, "micro-batches of a step, forwards first");
  verb.add_option("--on-conflict", t.conflict,
                  "a second forward while a backward is owed (docs/training.md) [hold]")
      .option_text("hold|recompute|slots:N");
  add_number(verb, "--regions", o.regions, "checkpointed spans of the network; 1: none");
  verb.add_option("--learning-rate", o.learning_rate, fmt::format("of AdamW [{}]", o.learning_rate))
      .option_text("X")
      .check(not_empty);
  add_number(verb, "--seed", o.seed, "of weights, batches and the sample");
}

void add_sample_options(verb_ref verb, command_line& t) {
  memory_options& o = t.options;
  verb.add_option("--prompt", o.prompt, fmt::format("what the sample goes on from [{}]", o.prompt))
      .option_text("TEXT");
  add_number(verb, "--sample", o.sample, "bytes of it; 0: none");
  verb.add_option("--temperature", o.temperature,
                  fmt::format("of it; 0: the likeliest byte [{}]", o.temperature))
      .option_text("T")
      .check(not_empty);
}

}  // namespace

void add_memory(verb_ref root, int& exit_code) {
  const verb_ref verb =
      root.add_subcommand("memory", "a model with sparse memories, trained on a text by replays");
  verb.footer("Example: reprise run memory --accumulate 2 --on-conflict slots:2 --verify --json");
  const auto typed = std::make_shared<command_line>();
  command_line& t = *typed;

  add_training_options(verb, t);
  add_model_options(verb, t);
  add_sample_options(verb, t);
  verb.add_option("--device", t.device, "auto, cpu, cuda:N or sim:seed=N [auto]")
      .option_text("NAME");
  verb.add_option("--threads", t.threads, "of the cpu [all]")
      .option_text("N")
      .check(whole_number)
      .range(1, 1024);
  verb.add_flag("--eager", t.options.eager, "no capture at all: the plain run");
  verb.add_flag("--verify", t.options.verify,
                "train a plain run beside, and compare after each step, bit for bit");
  add_output_options(verb, t.output);
  verb.callback([typed, &exit_code] { run(*typed, exit_code); });
}

}  // namespace reprise::app
