#include "reprise/platform/platform.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/cuda/device.hpp"
#include "reprise/grad/bring.hpp"
#include "reprise/ops/builtin.hpp"
#include "reprise/replay/stage_inputs.hpp"
#include "reprise/sdm/kernels.hpp"
#include "reprise/sim/device.hpp"
#include "reprise/tap/bring_plan.hpp"
#include "reprise/tap/move_span.hpp"
#include "reprise/tap/publish_taken.hpp"
#include "reprise/tap/take_rows.hpp"
#include "reprise/trace/tracing.hpp"

namespace reprise {

namespace {

constexpr std::string_view cuda_prefix = "cuda:";
constexpr std::string_view sim_prefix = "sim:seed=";

// All digits and nothing else.
template <class T>
std::optional<T> number_in(std::string_view digits) {
  T value{};
  const char* const end = digits.data() + digits.size();
  if (digits.empty() || digits.front() < '0' || digits.front() > '9') return std::nullopt;
  const auto [next, failed] = std::from_chars(digits.data(), end, value);
  if (failed != std::errc{} || next != end) return std::nullopt;
  return value;
}

device_row row_of(const cuda_row& card) {
  device_row row;
  row.name = card.name;
  row.model = card.model;
  row.usable = card.usable;
  row.why_not = card.why_not;
  if (card.usable) {
    row.traits = traits_of(card);
    row.limits = fmt::format("compute {}.{}, {} multiprocessors, {:.1f} GB, {} MB of L2",
                             card.compute_major, card.compute_minor, card.sm_count,
                             static_cast<double>(card.memory_bytes) * 1e-9, card.l2_bytes >> 20);
  }
  return row;
}

std::string names_of_usable() {
  std::string names = "auto";
  for (const device_row& row : list_devices()) {
    if (row.usable) names += ", " + row.name;
  }
  return names;
}

std::unique_ptr<device_api> open_implementation(const std::string& name,
                                                const open_options& options) {
  const std::string_view spec = name;
  if (spec == "cpu") return sim::open_cpu(options.threads);
  if (spec.starts_with(cuda_prefix)) {
    if (const auto ordinal = number_in<int>(spec.substr(cuda_prefix.size()))) {
      return open_cuda(*ordinal);
    }
  }
  if (spec.starts_with(sim_prefix)) {
    if (const auto seed = number_in<std::uint64_t>(spec.substr(sim_prefix.size()))) {
      return sim::open_adversary(
          {.seed = *seed, .takes_fault_points = options.rare_ways, .into = options.into});
    }
  }
  if (spec == "sim" || spec.starts_with("sim:")) {
    throw usage_error{fmt::format(
        "device {:?} is not a simulated GPU: it is sim:seed=N, such as sim:seed=7, with a whole "
        "number below 2^64; otherwise there are {}",
        name, names_of_usable())};
  }
  throw usage_error{fmt::format(
      "device {:?} is unknown; on this machine there are {}, and the simulated GPU, sim:seed=N",
      name, names_of_usable())};
}

}  // namespace

std::vector<device_row> list_devices() {
  std::vector<device_row> rows;
  for (const cuda_row& card : list_cuda_devices()) rows.push_back(row_of(card));
  if (rows.empty()) rows.push_back({"cuda", "", false, why_no_cuda(), "", {}});
  const device_traits cpu = sim::cpu_traits();
  rows.push_back({"cpu", cpu.model, true, "",
                  fmt::format("{} threads, {}", cpu.threads, fmt::join(cpu.arch_chain, ", ")),
                  cpu});
  return rows;
}

std::string automatic_device() {
  const std::vector<device_row> rows = list_devices();
  return std::ranges::find_if(rows, [](const device_row& row) { return row.usable; })->name;
}

std::string cuda_toolkit() {
  return cuda_toolkit_version();
}

std::string cuda_driver() {
  const std::vector<cuda_row> cards = list_cuda_devices();
  if (cards.empty()) return {};
  const int version = cards.front().driver_version;
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

kernel_registry builtin_kernels() {
  kernel_registry kernels;
  add_builtin_kernels(kernels);
  add_stage_inputs(kernels);
  add_bring_plan(kernels);
  add_publish_taken(kernels);
  add_take_rows(kernels);
  add_move_span(kernels);
  add_bring(kernels);
  add_sdm(kernels);
  checked::add_builtin_kernels(kernels);
  checked::add_stage_inputs(kernels);
  checked::add_bring_plan(kernels);
  checked::add_publish_taken(kernels);
  checked::add_take_rows(kernels);
  checked::add_move_span(kernels);
  checked::add_bring(kernels);
  checked::add_sdm(kernels);
  return kernels;
}

device open_device(std::string_view spec, const open_options& options,
                   const kernel_registry& kernels) {
  const std::string name = spec == "auto" ? automatic_device() : std::string{spec};
  std::unique_ptr<device_api> implementation = open_implementation(name, options);
  if (options.counts) implementation = counting(std::move(implementation), options.counts);
  if (options.trace) implementation = tracing(std::move(implementation), options.trace);
  auto table = resolve_kernels(kernels, implementation->traits(), options.variants);
  return device{std::move(implementation), std::move(table)};
}

}  // namespace reprise
