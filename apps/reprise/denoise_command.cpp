#include "apps/reprise/denoise_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/reprise/default_model.hpp"
#include "apps/reprise/denoise_report.hpp"
#include "apps/reprise/output.hpp"
#include "apps/reprise/progress_line.hpp"
#include "apps/reprise/whole_number.hpp"
#include "reprise/base/error.hpp"
#include "reprise/formats/printable.hpp"
#include "reprise/platform/platform.hpp"
#include "workloads/denoise/denoise.hpp"
#include "workloads/denoise/sheet.hpp"

namespace reprise::app {

namespace {

using denoise::denoise_options;
using denoise::denoiser_config;
using denoise::image_request;

constexpr std::int64_t most_requests = 256;
constexpr std::int64_t most_images = 256;
constexpr std::int64_t most_steps = 10000;

// As they were typed.
struct command_line {
  std::string device = "auto";
  int threads = 0;
  std::string model;
  std::int64_t requests = 4;
  std::optional<std::int64_t> steps;
  std::optional<std::int64_t> images;
  float guidance = 2;
  std::optional<std::string> classes;
  std::uint64_t seed = 0;
  bool sde = false;
  std::int64_t weight_moves = 0;
  std::string sheet;
  bool eager = false;
  bool verify = false;
  bool no_verify = false;
  bool explain = false;
  output_options output;
};

// A name of the model's, its number, or "none".
std::int32_t class_of(const std::string& text, const denoiser_config& config) {
  const auto named = std::ranges::find(config.class_names, text);
  if (named != config.class_names.end()) {
    return static_cast<std::int32_t>(named - config.class_names.begin());
  }
  if (text == "none") return config.null_class();
  std::int32_t number = -1;
  const char* const end = text.data() + text.size();
  const auto [next, failed] = std::from_chars(text.data(), end, number);
  if (failed != std::errc{} || next != end || number < 0 || number >= config.null_class()) {
    throw usage_error{fmt::format(
        "--classes: no class {}; give numbers from 0 to {}, none, or names: {}",
        formats::quoted_name(text), config.null_class() - 1, fmt::join(config.class_names, ", "))};
  }
  return number;
}

// CLI11's own lists leave out what is empty between two commas.
std::vector<std::int32_t> classes_of(const command_line& typed, const denoiser_config& config) {
  std::vector<std::int32_t> classes;
  if (!typed.classes) {
    for (std::int32_t i = 0; i < config.null_class(); ++i) classes.push_back(i);
    return classes;
  }
  for (std::size_t at = 0;;) {
    const std::size_t comma = typed.classes->find(',', at);
    classes.push_back(class_of(typed.classes->substr(at, comma - at), config));
    if (comma == std::string::npos) return classes;
    at = comma + 1;
  }
}

// What is not given differs from request to request, so that a plain call shows requests of several
// sizes in turns.
std::vector<image_request> requests_of(const command_line& typed, const denoiser_config& config) {
  constexpr std::array<std::int64_t, 3> mixed_steps{20, 15, 10};
  constexpr std::array<std::int64_t, 3> mixed_images{1, 2, 4};
  const std::vector<std::int32_t> classes = classes_of(typed, config);
  std::vector<image_request> requests;
  std::size_t given = 0;  // classes go round from image to image
  for (std::int64_t i = 0; i < typed.requests; ++i) {
    const auto at = static_cast<std::size_t>(i) % mixed_steps.size();
    image_request& asked = requests.emplace_back();
    asked.steps = typed.steps.value_or(mixed_steps[at]);
    const std::int64_t images =
        typed.images.value_or(typed.requests == 1 ? mixed_images.back() : mixed_images[at]);
    for (std::int64_t k = 0; k < images; ++k) {
      asked.classes.push_back(classes[given++ % classes.size()]);
    }
    asked.guidance = typed.guidance;
    asked.seed = typed.seed + static_cast<std::uint64_t>(i);
    asked.stochastic = typed.sde;
  }
  return requests;
}

denoise_options options_of(const command_line& typed) {
  if (typed.verify && typed.no_verify) throw usage_error{"--verify and --no-verify: choose one"};
  if (typed.verify && typed.eager) {
    throw usage_error{"--verify compares with the run that --eager makes; leave one out"};
  }
  if (typed.eager && typed.weight_moves != 0) {
    throw usage_error{
        "--sync-weights shows what becomes of recordings, and --eager makes none; leave one out"};
  }
  if (!(typed.guidance >= 0.0F && typed.guidance <= 20.0F)) {
    throw usage_error{"--guidance must be from 0 (without class) to 20; 1 is the class alone"};
  }
  denoise_options options;
  options.model = typed.model.empty() ? default_model("denoiser", "give --model DIR")
                                      : std::filesystem::path{typed.model};
  options.weight_moves = typed.weight_moves;
  options.eager = typed.eager;
  options.verify = !typed.no_verify;
  return options;
}

void run(const command_line& typed, int& exit_code) {
  check_json_target(typed.output);
  if (!typed.sheet.empty()) check_picture_target("--out", typed.sheet, typed.output);
  denoise_options options = options_of(typed);
  const std::filesystem::path model[] = {options.model / "config.json",
                                         options.model / "model.safetensors"};
  check_json_spares(typed.output, model, "a file of --model");
  check_spares("--out", typed.sheet, model, "a file of --model");
  options.requests =
      requests_of(typed, denoise::read_denoiser_config(options.model / "config.json"));

  std::int64_t steps = 0;
  for (const image_request& asked : options.requests) steps += denoise::loop_steps(asked);
  if (options.weight_moves >= steps) {
    throw usage_error{fmt::format("--sync-weights {}: the run has {} steps of its loop; give fewer",
                                  options.weight_moves, steps)};
  }

  const device opened = open_device(typed.device, {.threads = typed.threads});
  std::FILE* const people = typed.output.people();
  progress_line progress{people, typed.output.quiet};
  const denoise::denoise_report report = denoise::run_denoise(
      opened, options,
      [&](std::size_t done, std::size_t total) { progress.show("denoising", done, total); });
  progress.clear();
  const std::string unwritten =
      picture_failure(typed.sheet, [&] { return denoise::sheet_of(report.images, report.config); });
  const denoise_context context{std::string{opened.name()}, typed.seed,
                                unwritten.empty() ? typed.sheet : std::string{}};
  if (!typed.output.quiet) {
    print_report(people, report, options, context);
    if (typed.explain) print_explanation(people, report);
  }
  if (typed.output.json) write_json(typed.output, report_json(report, options, context));
  exit_code = exit_code_of(report.failure(), unwritten);
}

void add_request_options(verb_ref verb, command_line& t) {
  verb.add_option("--requests", t.requests, "how many take turns [4]")
      .option_text("N")
      .check(whole_number)
      .range(1, most_requests);
  verb.add_option("--steps", t.steps, "of time, of each request [20, 15, 10 in turns]")
      .option_text("N")
      .check(whole_number)
      .range(1, most_steps);
  verb.add_option("--images", t.images, "of each request [1, 2, 4 in turns; of a single one 4]")
      .option_text("N")
      .check(whole_number)
      .range(1, most_images);
  verb.add_option("--guidance", t.guidance, "0: no class, 1: the class, more: beyond it [2]")
      .option_text("F")
      .check(not_empty);
  verb.add_option("--classes", t.classes, "names, numbers or none, for one image after another")
      .option_text("A,B,…");
  verb.add_option("--seed", t.seed, "of the first request; the next has the next [0]")
      .option_text("N")
      .check(whole_number);
  verb.add_flag("--sde", t.sde, "stochastic steps, which draw on the host and run eagerly");
  verb.add_option("--sync-weights", t.weight_moves, "move all weights N times during the run [0]")
      .option_text("N")
      .check(whole_number)
      .range(0, most_steps);
}

}  // namespace

void add_denoise(verb_ref root, int& exit_code) {
  const verb_ref verb = root.add_subcommand("denoise", "images from a small model, steps replayed");
  verb.footer("Example: reprise run denoise --requests 4 --sync-weights 2 --out sheet.png --json");
  const auto typed = std::make_shared<command_line>();
  command_line& t = *typed;

  verb.add_option("--model", t.model, "folder with config.json and safetensors [models/denoiser]")
      .option_text("DIR")
      .check(not_empty);
  add_request_options(verb, t);
  verb.add_option("--out", t.sheet, "write the images as a PNG, one row for each request")
      .option_text("FILE")
      .check(not_empty);
  verb.add_option("--device", t.device, "auto, cpu, cuda:N or sim:seed=N [auto]")
      .option_text("NAME");
  verb.add_option("--threads", t.threads, "of the cpu [all]")
      .option_text("N")
      .check(whole_number)
      .range(1, 1024);
  verb.add_flag("--eager", t.eager, "one request after the other, no capture: the plain run");
  verb.add_flag("--verify", t.verify, "compare the images with those of a plain run (default)");
  verb.add_flag("--no-verify", t.no_verify, "leave that out");
  verb.add_flag("--explain", t.explain,
                "say what was recorded, what it cost, why steps ran eagerly");
  add_output_options(verb, t.output);
  verb.callback([typed, &exit_code] { run(*typed, exit_code); });
}

}  // namespace reprise::app
