#include "apps/reprise/train_denoiser_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>

#include "apps/reprise/default_model.hpp"
#include "apps/reprise/output.hpp"
#include "apps/reprise/progress_line.hpp"
#include "apps/reprise/version.hpp"
#include "apps/reprise/whole_number.hpp"
#include "reprise/base/error.hpp"
#include "workloads/train/data.hpp"
#include "workloads/train/denoiser/train_denoiser.hpp"

namespace reprise::app {

namespace {

constexpr std::int64_t most_steps = 10'000'000;

struct command_line {
  std::string out = "denoiser";
  std::string data{train::packaged_data};
  std::string config;
  denoise::train_options options;
  output_options output;
};

void run(const command_line& typed) {
  check_json_target(typed.output);
  denoise::train_options options = typed.options;
  options.out = typed.out;
  options.data = typed.data;
  const std::filesystem::path made[] = {options.out / "model.safetensors",
                                        options.out / "config.json"};
  check_json_spares(typed.output, made, "one of the model that --out names");
  check_json_spares(typed.output, train::files_of(options.data), "a file of --data");
  options.config = typed.config.empty()
                       ? default_model("denoiser", "give --config FILE") / "config.json"
                       : std::filesystem::path{typed.config};
  check_json_spares(typed.output, {&options.config, 1}, "the file of --config");
  std::FILE* const people = typed.output.people();
  progress_line progress{people, typed.output.quiet};
  const denoise::train_report report =
      denoise::train_denoiser(options, [&](std::int64_t done, float loss) {
        progress.show("training the denoiser", static_cast<std::size_t>(done),
                      static_cast<std::size_t>(options.steps), fmt::format("loss {:.4f}", loss));
      });
  progress.clear();
  const std::string model = (options.out / "model.safetensors").string();
  if (!typed.output.quiet) {
    fmt::print(people, "{}: {} steps in {:.0f} s, loss {:.4f}, {} bytes\n", model, options.steps,
               report.seconds, report.loss, report.bytes);
  }
  if (typed.output.json) {
    write_json(typed.output, {{"version", version},
                              {"model", model},
                              {"data", typed.data},
                              {"steps", options.steps},
                              {"seed", options.seed},
                              {"threads", options.threads},
                              {"loss", report.loss},
                              {"seconds", report.seconds},
                              {"bytes", report.bytes}});
  }
}

// Those of `train` are in front of this verb's name, and mean nothing to it.
void refuse_options_of(verb_ref train) {
  const std::string given = train.given_option();
  if (given.empty()) return;
  throw usage_error{
      fmt::format("{}: it is no option of denoiser; give its own behind its name, see reprise run "
                  "train denoiser --help",
                  given)};
}

}  // namespace

void add_train_denoiser(verb_ref train) {
  const verb_ref verb =
      train.add_subcommand("denoiser", "make models/denoiser again, byte for byte, from a seed");
  verb.footer("Example: reprise run train denoiser --out models/denoiser --seed 1");
  const auto typed = std::make_shared<command_line>();
  command_line& t = *typed;
  t.options.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));

  verb.add_option("--out", t.out, "the folder that gets model.safetensors [denoiser]")
      .option_text("DIR")
      .check(not_empty);
  verb.add_option("--data", t.data, fmt::format("the files of Fashion-MNIST [{}]", t.data))
      .option_text("DIR")
      .check(not_empty);
  verb.add_option("--config", t.config, "the network's sizes [models/denoiser/config.json]")
      .option_text("FILE")
      .check(not_empty);
  verb.add_option("--steps", t.options.steps, fmt::format("of AdamW [{}]", t.options.steps))
      .option_text("N")
      .check(whole_number)
      .range(1, most_steps);
  verb.add_option("--seed", t.options.seed, "of weights, images and noise [1]")
      .option_text("N")
      .check(whole_number);
  verb.add_option("--threads", t.options.threads, "of the cpu; they change no bit [all]")
      .option_text("N")
      .check(whole_number)
      .range(1, 1024);
  add_output_options(verb, t.output);
  verb.callback([typed, train] {
    refuse_options_of(train);
    run(*typed);
  });
}

}  // namespace reprise::app
