#include "apps/reprise/matrix_command.hpp"

#include <fmt/format.h>

#include <memory>

#include "apps/reprise/output.hpp"
#include "apps/reprise/version.hpp"
#include "reprise/platform/manifest.hpp"
#include "workloads/denoise/denoiser_component.hpp"

namespace reprise::app {

namespace {

// "runs on cpu; not on cuda: not built": of devices of its own kind only, or of none.
std::string where(const manifest_row& row) {
  std::string on;
  std::string off;
  for (const cell_on_device& at : row.on) {
    if (at.why_not.empty()) {
      on += (on.empty() ? "runs on " : ", ") + at.device;
    } else if (at.device.starts_with(name_of(row.device))) {
      off += fmt::format("{}not on {}: {}", off.empty() ? "" : "; ", at.device, at.why_not);
    }
  }
  return on + (on.empty() || off.empty() ? "" : "; ") + off;
}

void print_rows(std::FILE* to, const std::vector<manifest_row>& rows) {
  std::string_view name;
  for (const manifest_row& row : rows) {
    if (row.name != name) fmt::print(to, "\n  {}\n", row.name);
    name = row.name;
    std::string what = row.arch;
    if (row.variant != "default") what += (what.empty() ? "" : " ") + row.variant;
    if (what.empty()) what = row.variant;
    fmt::print(to, "    {:<5} {:<8} {:<15} {:<10} {:<14} {}; {}\n", name_of(row.device), what,
               text_of(row.bound), row.workspace ? "workspace" : "", row.built ? "" : "not built",
               where(row), row.source);
  }
}

void print(std::FILE* to, const manifest& made) {
  fmt::print(to,
             "kernels: device, arch, values against the generic CPU body, where it runs; source\n");
  print_rows(to, made.kernels);
  fmt::print(to, "\ncomponents: device, variant, where it runs; source\n");
  if (made.components.empty()) fmt::print(to, "\n  none is declared\n");
  print_rows(to, made.components);
}

nlohmann::json as_json(const manifest_row& row) {
  nlohmann::json on = nlohmann::json::object();
  for (const cell_on_device& at : row.on) {
    on[at.device] = {{"available", at.why_not.empty()}, {"why_not", at.why_not}};
  }
  return {{"name", row.name},
          {"device", name_of(row.device)},
          {"arch", row.arch},
          {"variant", row.variant},
          {"source", row.source},
          {"bound", {{"absolute", row.bound.absolute}, {"relative", row.bound.relative}}},
          {"workspace", row.workspace},
          {"built", row.built},
          {"on", on}};
}

nlohmann::json as_json(const std::vector<manifest_row>& rows) {
  nlohmann::json all = nlohmann::json::array();
  for (const manifest_row& row : rows) all.push_back(as_json(row));
  return all;
}

nlohmann::json as_json(const manifest& made) {
  nlohmann::json devices = nlohmann::json::array();
  for (const device_row& row : made.devices) devices.push_back(row.name);
  return {{"version", version},
          {"devices", devices},
          {"kernels", as_json(made.kernels)},
          {"components", as_json(made.components)}};
}

}  // namespace

void add_matrix(verb_ref root) {
  const verb_ref verb = root.add_subcommand(
      "matrix", "print every kernel body and component, and where each can run");
  verb.footer("Example: reprise matrix --json");
  const auto options = std::make_shared<output_options>();
  add_output_options(verb, *options);
  verb.callback([options] {
    check_json_target(*options);
    component_registry components = builtin_components();
    denoise::add_components(components, "models/denoiser");  // listed, not loaded
    const manifest made = make_manifest(builtin_kernels(), components);
    if (!options->quiet) print(options->people(), made);
    if (options->json) write_json(*options, as_json(made));
  });
}

}  // namespace reprise::app
