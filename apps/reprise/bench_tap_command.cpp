#include "apps/reprise/bench_tap_command.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "apps/reprise/bench_output.hpp"
#include "apps/reprise/bench_tap_report.hpp"
#include "apps/reprise/output.hpp"
#include "apps/reprise/progress_line.hpp"
#include "bench/tap/layer.hpp"
#include "bench/tap/tap_bench.hpp"
#include "reprise/platform/platform.hpp"

namespace reprise::app {

namespace {

// As they were typed.
struct command_line {
  std::string device = "auto";
  bench::tap_bench_options options;
  output_options output;
};

// With what the device chose.
std::string command_text(const bench::tap_bench_options& o, device_ref device) {
  return fmt::format(
      "reprise bench tap --device {} --layers {} --layer-mib {} --kib {} --buffers {} --repeats {} "
      "--pairs {} --drain-mib {} --drains {} --producer-mib {} --plans {}",
      device.name(), o.layers, o.layer_mib, fmt::join(o.kib, ","), fmt::join(o.buffers, ","),
      o.repeats, o.pairs, o.drain_mib, o.drains, o.producer_mib, o.plans);
}

device open_with_layers(const std::string& name) {
  kernel_registry kernels = builtin_kernels();
  bench::add_tap_kernels(kernels);
  return open_device(name, {}, kernels);
}

void run(const command_line& typed, int& exit_code) {
  check_json_target(typed.output);
  const device opened = open_with_layers(typed.device);
  std::FILE* const people = typed.output.people();
  progress_line line{people, typed.output.quiet};
  const bench::tap_bench_report report =
      bench::run_tap_bench(opened, typed.options, line.listener());
  line.clear();
  if (!typed.output.quiet) print_report(people, report, opened);
  if (typed.output.json) {
    nlohmann::json value = bench_json("tap", opened, command_text(report.options, opened));
    add_report(value, report);
    write_json(typed.output, value);
  }
  exit_code = exit_code_of(report.failure());
}

}  // namespace

void add_bench_tap(verb_ref bench, int& exit_code) {
  const verb_ref verb = bench.add_subcommand(
      "tap", "what looking inside a step costs, and how fast what is seen leaves the device");
  verb.footer("Example: reprise bench tap --device auto --kib 8,64 --json");
  const auto typed = std::make_shared<command_line>();
  bench::tap_bench_options& o = typed->options;
  verb.add_option("--layers", o.layers, "of the step whose residuals are tapped [36]")
      .range(1, 512)
      .option_text("N");
  verb.add_option("--layer-mib", o.layer_mib, "of weights that each reads [32 on a GPU, else 1]")
      .range(1, 1024)
      .option_text("N");
  verb.add_option("--kib", o.kib, "of each residual [8,64,256]").delimiter(',').option_text("N,…");
  verb.add_option("--buffers", o.buffers, "that residuals take in turns; more of the first [3,2]")
      .delimiter(',')
      .option_text("N,…");
  verb.add_option("--repeats", o.repeats, "rounds of each way [100 on a GPU, else 5]")
      .range(1, 1'000'000)
      .option_text("N");
  verb.add_option("--pairs", o.pairs, "of a bare step and one with no point on [1000; 20]")
      .range(1, 1'000'000)
      .option_text("N");
  verb.add_option("--drain-mib", o.drain_mib, "of one flush [128; 4]")
      .range(1, 4096)
      .option_text("N");
  verb.add_option("--drains", o.drains, "flushes of each way [20; 3]")
      .range(1, 1'000'000)
      .option_text("N");
  verb.add_option("--producer-mib", o.producer_mib, "of the large point [64; 1]")
      .range(1, 4096)
      .option_text("N");
  verb.add_option("--plans", o.plans, "of a step of many points [1000]").option_text("N");
  verb.add_option("--device", typed->device, "auto, cpu, cuda:N or sim:seed=N [auto]")
      .option_text("NAME");
  add_output_options(verb, typed->output);
  verb.callback([typed, &exit_code] { run(*typed, exit_code); });
}

}  // namespace reprise::app
