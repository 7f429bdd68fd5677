#include "apps/reprise/doctor_command.hpp"

#include <fmt/format.h>

#include <memory>

#include "apps/reprise/output.hpp"
#include "apps/reprise/version.hpp"
#include "reprise/platform/platform.hpp"

namespace reprise::app {

namespace {

constexpr const char* simulated_gpu =
    "--device sim:seed=N is a simulated GPU that looks for races (reprise sim)";

struct findings {
  std::vector<device_row> devices = list_devices();
  std::string automatic = automatic_device();
  std::string toolkit = cuda_toolkit();
  std::string driver = cuda_driver();
};

std::string or_none(const std::string& text) {
  return text.empty() ? "none" : text;
}

void print(std::FILE* to, const findings& found) {
  fmt::print(to, "reprise {}\n", version);
  fmt::print(to, "CUDA toolkit of this build: {}\n", or_none(found.toolkit));
  fmt::print(to, "CUDA of the driver here:    {}\n\n", or_none(found.driver));
  for (const device_row& row : found.devices) {
    if (row.usable) {
      fmt::print(to, "  {:<8} {}; {}\n", row.name, row.model, row.limits);
    } else {
      fmt::print(to, "  {:<8} not usable: {}\n", row.name, row.why_not);
    }
  }
  fmt::print(to, "\n--device auto uses {}; {}\n", found.automatic, simulated_gpu);
}

nlohmann::json as_json(const findings& found) {
  nlohmann::json devices = nlohmann::json::array();
  for (const device_row& row : found.devices) {
    devices.push_back({{"name", row.name},
                       {"model", row.model},
                       {"usable", row.usable},
                       {"why_not", row.why_not},
                       {"limits", row.limits}});
  }
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::json{} : nlohmann::json(text);
  };
  return {{"version", version},
          {"cuda_toolkit", or_null(found.toolkit)},
          {"cuda_driver", or_null(found.driver)},
          {"devices", devices},
          {"simulated", "sim:seed=N"},
          {"device", found.automatic}};
}

}  // namespace

void add_doctor(verb_ref root) {
  const verb_ref verb = root.add_subcommand("doctor", "print devices, toolkit, driver and limits");
  verb.footer("Example: reprise doctor --json");
  const auto options = std::make_shared<output_options>();
  add_output_options(verb, *options);
  verb.callback([options] {
    check_json_target(*options);
    const findings found;
    if (!options->quiet) print(options->people(), found);
    if (options->json) write_json(*options, as_json(found));
  });
}

}  // namespace reprise::app
