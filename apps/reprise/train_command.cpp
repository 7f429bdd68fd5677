#include "apps/reprise/train_command.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "apps/reprise/output.hpp"
#include "apps/reprise/progress_line.hpp"
#include "apps/reprise/train_denoiser_command.hpp"
#include "apps/reprise/train_report.hpp"
#include "apps/reprise/whole_number.hpp"
#include "reprise/base/error.hpp"
#include "reprise/formats/printable.hpp"
#include "reprise/platform/platform.hpp"
#include "workloads/train/train.hpp"

namespace reprise::app {

namespace {

using train::train_options;

// As they were typed, beside what goes into the options as it is.
struct command_line {
  std::string device = "auto";
  int threads = 0;
  std::string data{train::packaged_data};
  std::string precision = "fp32";
  std::string scale = "dynamic";
  std::optional<std::string> graphed;
  bool eager = false;
  std::string picture;
  train_options options;
  output_options output;
};

cast_mode precision_from(const std::string& text) {
  for (const cast_mode one : {cast_mode::none, cast_mode::bf16}) {
    if (text == name_of_precision(one)) return one;
  }
  throw usage_error{fmt::format("--precision {}: give fp32 or bf16", formats::quoted_name(text))};
}

train::graphed_parts parts_of(const command_line& typed) {
  if (typed.eager && typed.graphed) {
    throw usage_error{"--eager is --graphed none; leave one out"};
  }
  return train::parts_from(typed.eager ? "none" : typed.graphed.value_or("network,heads,loss"));
}

train_options options_of(const command_line& typed) {
  train_options options = typed.options;
  options.data = typed.data;
  options.casts = precision_from(typed.precision);
  options.scale = train::scaling_from(typed.scale);
  options.graphed = parts_of(typed);
  check(options);
  return options;
}

void run(const command_line& typed, int& exit_code) {
  check_json_target(typed.output);
  if (!typed.picture.empty()) check_picture_target("--out", typed.picture, typed.output);
  const train_options options = options_of(typed);
  const std::vector<std::filesystem::path> images = train::files_of(options.data);
  check_json_spares(typed.output, images, "a file of --data");
  check_spares("--out", typed.picture, images, "a file of --data");
  const device opened = open_device(typed.device, {.threads = typed.threads});
  std::FILE* const people = typed.output.people();
  progress_line progress{people, typed.output.quiet};
  const train::train_report report =
      train::run_train(opened, options, [&](const train::train_progress& done, train::training&) {
        progress.show("training",
                      static_cast<std::size_t>((done.epoch - 1) * done.windows + done.window),
                      static_cast<std::size_t>(options.epochs * done.windows),
                      fmt::format("epoch {}, loss {:.3f}", done.epoch, done.loss));
      });
  progress.clear();
  const std::string unwritten =
      picture_failure(typed.picture, [&] { return train::picture_of(report.shown); });
  const train_context context{std::string{opened.name()},
                              unwritten.empty() ? typed.picture : std::string{}};
  if (!typed.output.quiet) print_report(people, report, options, context);
  if (typed.output.json) write_json(typed.output, report_json(report, options, context));
  exit_code = exit_code_of(report.failure(), unwritten);
}

// What is no number is refused here, what is out of range by train::check.
template <class Number>
void add_number(verb_ref verb, const char* name, Number& into, const char* what) {
  verb.add_option(name, into, fmt::format("{} [{}]", what, into))
      .option_text("N")
      .check(whole_number);
}

void add_float(verb_ref verb, const char* name, float& into, const char* what) {
  verb.add_option(name, into, fmt::format("{} [{}]", what, into)).option_text("X").check(not_empty);
}

void add_training_options(verb_ref verb, command_line& t) {
  train_options& o = t.options;
  verb.add_option("--data", t.data, fmt::format("the files of Fashion-MNIST [{}]", t.data))
      .option_text("DIR")
      .check(not_empty);
  add_number(verb, "--epochs", o.epochs, "of training");
  add_number(verb, "--batch", o.batch, "images of a micro-batch");
  add_number(verb, "--accumulate", o.accumulate, "micro-batches of a window, which is one update");
  add_number(verb, "--subset", o.subset, "train on the first N images; 0: on all");
  add_number(verb, "--unlabelled-every", o.unlabelled_every,
             "drop the labels of each N-th micro-batch; 0: of none");
  add_float(verb, "--learning-rate", o.learning_rate,
            "of AdamW, at first; it goes down to a tenth");
  add_float(verb, "--clip", o.clip, "the norm of all gradients, at most; 0: any");
  add_float(verb, "--ema", o.ema, "decay of the average of weights, which is validated");
  verb.add_option("--loss-scale", t.scale, "of the loss in its backward [dynamic]")
      .option_text("dynamic|X");
  add_number(verb, "--seed", o.seed, "of weights, order and dropout");
}

void add_model_options(verb_ref verb, command_line& t) {
  train_options& o = t.options;
  add_number(verb, "--hidden", o.hidden, "width of the trunk");
  add_number(verb, "--width", o.width, "of what the trunk hands to its heads");
  add_number(verb, "--mask-hidden", o.mask_hidden, "width inside of the head for masks");
  add_float(verb, "--mask-weight", o.mask_weight, "of the masks' loss");
  add_float(verb, "--dropout", o.dropout, "rate, in the trunk");
  verb.add_option("--precision", t.precision, "what products round their operands to [fp32]")
      .option_text("fp32|bf16");
}

}  // namespace

void add_train(verb_ref root, int& exit_code) {
  const verb_ref verb = root.add_subcommand("train", "a classifier of clothes, trained by replays");
  verb.footer("Example: reprise run train --accumulate 3 --subset 6000 --verify --json");
  add_train_denoiser(verb);
  const auto typed = std::make_shared<command_line>();
  command_line& t = *typed;

  add_training_options(verb, t);
  add_model_options(verb, t);
  verb.add_option("--graphed", t.graphed, "the parts that are recorded [network,heads,loss]")
      .option_text("A,B|none");
  verb.add_flag("--eager", t.eager, "no capture at all: the plain run; as --graphed none");
  verb.add_flag("--verify", t.options.verify,
                "train a plain run beside, and compare after each window, bit for bit");
  verb.add_option("--out", t.picture, "write a picture of predictions as a PNG")
      .option_text("FILE")
      .check(not_empty);
  verb.add_option("--device", t.device, "auto, cpu, cuda:N or sim:seed=N [auto]")
      .option_text("NAME");
  verb.add_option("--threads", t.threads, "of the cpu [all]")
      .option_text("N")
      .check(whole_number)
      .range(1, 1024);
  add_output_options(verb, t.output);
  verb.callback([typed, verb, &exit_code] {
    if (!verb.has_subcommand()) run(*typed, exit_code);
  });
}

}  // namespace reprise::app
