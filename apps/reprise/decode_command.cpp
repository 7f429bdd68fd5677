#include "apps/reprise/decode_command.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/reprise/decode_report.hpp"
#include "apps/reprise/default_model.hpp"
#include "apps/reprise/output.hpp"
#include "apps/reprise/text_display.hpp"
#include "apps/reprise/watched_run.hpp"
#include "apps/reprise/whole_number.hpp"
#include "reprise/base/error.hpp"
#include "reprise/platform/platform.hpp"
#include "reprise/records/sink_address.hpp"
#include "workloads/decode/decode.hpp"

namespace reprise::app {

namespace {

using decode::decode_options;
using token_list = std::vector<std::int32_t>;

// As they were typed.
struct command_line {
  std::string device = "auto";
  int threads = 0;
  std::string model;
  bool random_weights = false;
  std::string config;
  std::vector<std::string> prompts;
  std::vector<std::string> prompt_ids;
  std::string prompt_file;
  std::int64_t tokens = 96;
  bool greedy = false;
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::uint64_t seed = 0;
  std::vector<std::int64_t> batch_sizes{1, 2, 4, 8};
  std::string weights;
  bool eager = false;
  bool verify = false;
  bool no_verify = false;
  bool explain = false;
  watch_options watch;
  output_options output;
};

const std::vector<std::string> default_prompts{
    "In the beginning ",
    "And it came to pass",
    "The LORD is my ",
    "Blessed are the ",
};

token_list parse_ids(const std::string& text) {
  token_list ids;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    std::int32_t id = 0;
    const auto [next, failed] = std::from_chars(at, end, id);
    if (failed != std::errc{} || (next != end && *next != ',')) {
      throw usage_error{
          fmt::format("--prompt-ids {}: not token ids; give whole numbers with commas, "
                      "such as 1,2,3",
                      text)};
    }
    ids.push_back(id);
    if (next == end) return ids;
    at = next + 1;
  }
}

std::vector<std::string> read_lines(const std::string& file) {
  std::ifstream in{file, std::ios::binary};
  if (!in || std::filesystem::is_directory(file)) {
    throw usage_error{
        fmt::format("--prompts {}: the file cannot be read; give a text file with one "
                    "prompt a line",
                    file)};
  }
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) lines.push_back(line);
  }
  if (lines.empty()) throw usage_error{fmt::format("--prompts {}: no prompt in it", file)};
  return lines;
}

// Text where tokens are bytes; elsewhere ids, from lines as from --prompt-ids.
std::vector<token_list> prompts_of(const command_line& typed, bool byte_tokens) {
  std::vector<std::string> texts = typed.prompts;
  std::vector<token_list> prompts;
  if (!typed.prompt_file.empty()) {
    for (std::string& line : read_lines(typed.prompt_file)) {
      if (byte_tokens) {
        texts.push_back(std::move(line));
      } else {
        prompts.push_back(parse_ids(line));
      }
    }
  }
  if (!byte_tokens && !texts.empty()) {
    throw usage_error{
        "--prompt: this model's tokens are not bytes and its tokenizer is not built; "
        "give --prompt-ids"};
  }
  for (const std::string& text : texts) prompts.push_back(decode::byte_tokens(text));
  for (const std::string& ids : typed.prompt_ids) prompts.push_back(parse_ids(ids));
  if (!prompts.empty()) return prompts;
  if (!byte_tokens) return {{1, 2, 3, 4}};  // sizes without a tokenizer still run
  for (const std::string& text : default_prompts) prompts.push_back(decode::byte_tokens(text));
  return prompts;
}

decode::sampling_options sampling_of(const command_line& typed) {
  decode::sampling_options sampling;
  sampling.seed = typed.seed;
  sampling.greedy = !typed.temperature && !typed.top_p;
  if (typed.greedy && !sampling.greedy) {
    throw usage_error{"--greedy takes the likeliest token; leave out --temperature and --top-p"};
  }
  sampling.temperature = typed.temperature.value_or(1.0F);
  sampling.top_p = typed.top_p.value_or(1.0F);
  if (!(sampling.temperature > 0.0F && sampling.temperature <= 100.0F)) {
    throw usage_error{"--temperature must be above 0 and at most 100; --greedy is the limit at 0"};
  }
  if (!(sampling.top_p > 0.0F && sampling.top_p <= 1.0F)) {
    throw usage_error{"--top-p must be above 0 and at most 1"};
  }
  return sampling;
}

decode_options options_of(const command_line& typed) {
  decode_options options;
  if (typed.random_weights != !typed.config.empty()) {
    throw usage_error{"--random-weights and --config FILE go together: sizes without a model"};
  }
  if (typed.random_weights && !typed.model.empty()) {
    throw usage_error{"--random-weights draws its own weights; leave out --model"};
  }
  if (typed.random_weights) {
    options.random_config = typed.config;
  } else {
    options.model = typed.model.empty() ? default_model("tiny-llama", "give --model DIR")
                                        : std::filesystem::path{typed.model};
  }
  options.tokens = typed.tokens;
  options.sampling = sampling_of(typed);
  options.batch_sizes = typed.batch_sizes;
  if (typed.weights == "fp32") options.weights = decode::weight_storage::f32;
  if (typed.weights == "bf16") options.weights = decode::weight_storage::bf16;
  if (!typed.weights.empty() && options.weights == decode::weight_storage::as_file) {
    throw usage_error{fmt::format("--weights {}: give bf16 or fp32", typed.weights)};
  }
  options.eager = typed.eager;
  if (typed.verify && typed.no_verify) throw usage_error{"--verify and --no-verify: choose one"};
  if (typed.verify && typed.eager) {
    throw usage_error{"--verify compares replays with eager runs; leave it out with --eager"};
  }
  return options;
}

std::vector<std::string> shown_prompts(const std::vector<token_list>& prompts, bool byte_tokens) {
  std::vector<std::string> texts;
  for (const token_list& prompt : prompts) {
    texts.push_back(byte_tokens ? decode::token_bytes(prompt)
                                : fmt::format("{} > ", fmt::join(prompt, " ")));
  }
  return texts;
}

// `port`: where metrics are read; 0: nowhere.
void print_opening(std::FILE* to, const command_line& typed, const decode_context& context,
                   int port) {
  if (typed.device == "auto") fmt::print(to, "device: {}\n\n", context.device);
  if (port != 0) fmt::print(to, "metrics: http://127.0.0.1:{}/metrics\n\n", port);
  if (!context.byte_tokens) fmt::print(to, "tokens are shown as ids: no tokenizer is built\n\n");
}

// Nothing goes over what is read, and each output has a place of its own.
void check_outputs(const command_line& typed, const decode_options& options) {
  const std::filesystem::path model[] = {options.model / "config.json",
                                         options.model / "model.safetensors",
                                         options.model / "model.safetensors.index.json"};
  const std::filesystem::path config[] = {typed.config}, prompts[] = {typed.prompt_file};
  const std::string metrics = typed.watch.metrics.value_or("");
  for (const auto& [option, file] :
       {std::pair{"--json", typed.output.json.value_or("")}, std::pair{"--metrics", metrics}}) {
    check_spares(option, file, model, "a file of --model");
    if (!typed.config.empty()) check_spares(option, file, config, "the file of --config");
    if (!typed.prompt_file.empty()) check_spares(option, file, prompts, "the file of --prompts");
    if (file.empty() || file == "-") continue;
    const std::filesystem::path taken[] = {file};
    for (const std::string& out : typed.watch.out) {
      const sink_address place = parse_sink_address(out);
      const auto* const run = std::get_if<run_folder_address>(&place);
      if (run == nullptr) continue;
      check_spares("--out", run->folder.string(), taken, fmt::format("the file of {}", option));
    }
  }
  if (!typed.output.json || metrics.empty()) return;
  const std::filesystem::path json[] = {*typed.output.json};
  check_spares("--metrics", metrics, json, "the file of --json");
}

void run(const command_line& typed, int& exit_code) {
  check_json_target(typed.output);
  check_watch_options(typed.watch);
  decode_options options = options_of(typed);
  check_outputs(typed, options);
  const decode::model_config config = decode::config_of(options);
  options.prompts = prompts_of(typed, config.byte_tokens);

  const auto calls = std::make_shared<call_counts>();
  const device opened = open_device(typed.device, {.threads = typed.threads, .counts = calls});
  options.verify = !options.eager && !typed.no_verify &&
                   (typed.verify || device_ref{opened}.bodies() == device_kind::cpu);

  const decode_context context{
      std::string{opened.name()},
      options.random_config ? options.random_config->string() + " (drawn)" : options.model.string(),
      config.byte_tokens, typed.seed};
  std::FILE* const people = typed.output.people();
  text_display display{people, shown_prompts(options.prompts, config.byte_tokens),
                       config.byte_tokens};
  std::optional<watched_run> watched;
  if (typed.watch.asked()) {
    watched.emplace(opened, typed.watch, "decode", decode::marked_points(config));
  }
  bool begun = false;  // nothing is shown until the input has proved good
  const auto listen = [&](std::size_t index, const decode::request& asked) {
    if (typed.output.quiet) return;
    if (!begun) print_opening(people, typed, context, watched ? watched->metrics_port() : 0);
    begun = true;
    display.token(index, asked.generated.back());
    if (asked.finish != decode::finish_reason::running) display.end(index);
  };
  const decode::decode_report report =
      watched ? decode::run_decode(opened, options, listen, watched->eye().observer(),
                                   [&](auto rows) { watched->plan(rows); })
              : decode::run_decode(opened, options, listen);
  if (watched) watched->finish();
  if (!typed.output.quiet) {
    print_report(people, report, context);
    if (watched) watched->print(people);
  }
  if (typed.explain) fmt::print(people, "{}", text_of(report.cache));
  if (typed.output.json) {
    nlohmann::json json = report_json(report, context, *calls);
    if (watched) json["taps"] = watched->as_json();
    write_json(typed.output, json);
  }
  std::string failure = report.failure();
  if (watched && failure.empty()) failure = watched->failure();
  exit_code = exit_code_of(failure);
}

}  // namespace

void add_decode(verb_ref root, int& exit_code) {
  const verb_ref verb =
      root.add_subcommand("decode", "text from a Llama-style model, steps replayed");
  verb.footer(
      "With --watch, copies of marked tensors leave while the run goes on (docs/taps.md); --out "
      "keeps\n"
      "them, and reprise records reads a folder of them.\n\n"
      "Example: reprise run decode --prompt \"In the beginning \" --tokens 96 --json");
  const auto typed = std::make_shared<command_line>();
  command_line& t = *typed;

  verb.add_option("--model", t.model, "folder with config.json and safetensors [models/tiny-llama]")
      .option_text("DIR");
  verb.add_flag("--random-weights", t.random_weights, "draw weights of the sizes in --config");
  verb.add_option("--config", t.config, "sizes for --random-weights, a config.json")
      .option_text("FILE");
  verb.add_option("--prompt", t.prompts, "text to continue; may be given again")
      .option_text("TEXT")
      .one_at_a_time();
  verb.add_option("--prompt-ids", t.prompt_ids, "token ids to continue; may be given again")
      .option_text("1,2,3")
      .one_at_a_time();
  verb.add_option("--prompts", t.prompt_file, "a file with one prompt a line").option_text("FILE");
  verb.add_option("--tokens", t.tokens, "at most, per prompt [96]")
      .option_text("N")
      .range(1, std::int64_t{1} << 40);
  verb.add_flag("--greedy", t.greedy, "take the likeliest token (default)");
  verb.add_option("--temperature", t.temperature, "sample at this temperature").option_text("T");
  verb.add_option("--top-p", t.top_p, "sample from the likeliest P of the weight").option_text("P");
  verb.add_option("--seed", t.seed, "of sampling, and of drawn weights [0]")
      .option_text("N")
      .check(whole_number);
  verb.add_option("--batch-sizes", t.batch_sizes, "sizes that are recorded [1,2,4,8]")
      .delimiter(',')
      .option_text("N,N,…");
  verb.add_option("--weights", t.weights, "storage after loading [as the file says]")
      .option_text("bf16|fp32");
  verb.add_option("--device", t.device, "auto, cpu, cuda:N or sim:seed=N [auto]")
      .option_text("NAME");
  verb.add_option("--threads", t.threads, "of the cpu [all]").option_text("N").range(1, 1024);
  verb.add_flag("--eager", t.eager, "no capture at all: the plain reference run");
  verb.add_flag("--verify", t.verify, "compare each replay with an eager run (default on cpu)");
  verb.add_flag("--no-verify", t.no_verify, "leave that out");
  verb.add_flag("--explain", t.explain, "say what was recorded, what it cost, and what was missed");
  add_watch_options(verb, t.watch);
  add_output_options(verb, t.output);
  verb.callback([typed, &exit_code] { run(*typed, exit_code); });
}

}  // namespace reprise::app
