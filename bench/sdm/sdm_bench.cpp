#include "bench/sdm/sdm_bench.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/measure/silence.hpp"
#include "reprise/base/error.hpp"

namespace reprise::bench {

namespace {

constexpr int most_rounds = 1'000'000;

// The larger one last.
std::vector<sdm_shape> all_shapes() {
  return {small_sdm_shape(), large_sdm_shape()};
}

std::vector<sdm_shape> shapes_of(const std::vector<std::string>& names) {
  std::vector<sdm_shape> shapes = all_shapes();
  std::erase_if(shapes, [&](const sdm_shape& one) {
    return std::ranges::find(names, one.name) == names.end();
  });
  return shapes;
}

bool is_gpu(device_ref device) {
  return device.bodies() == device_kind::cuda;
}

void require(const sdm_bench_options& options) {
  if (options.rounds < 1 || options.rounds > most_rounds) {
    throw usage_error{fmt::format("--rounds must be a whole number from 1 to {}", most_rounds)};
  }
  const std::vector<sdm_shape> known = all_shapes();
  for (const std::string& one : options.sizes) {
    if (std::ranges::find(known, one, &sdm_shape::name) != known.end()) continue;
    throw usage_error{fmt::format(
        "--sizes knows small and large, and not '{}'; give small,large or one of them", one)};
  }
}

}  // namespace

std::vector<std::string> sizes_for(device_ref device) {
  std::vector<std::string> names;
  for (const sdm_shape& one : all_shapes()) {
    if (is_gpu(device) || one.name == small_sdm_shape().name) names.push_back(one.name);
  }
  return names;
}

std::vector<const op_counts*> sdm_bench_report::ops() const {
  std::vector<const op_counts*> all;
  for (const size_costs& size : sizes) {
    for (const op_counts& one : size.ops) all.push_back(&one);
  }
  if (growth) {
    for (const op_counts& one : growth->ops) all.push_back(&one);
  }
  return all;
}

std::vector<const sdm_step_counts*> sdm_bench_report::steps() const {
  std::vector<const sdm_step_counts*> all;
  for (const size_costs& size : sizes) {
    for (const sdm_step_counts& one : size.steps) all.push_back(&one);
  }
  if (decode) {
    for (const sdm_step_counts& one : decode->steps) all.push_back(&one);
  }
  if (growth) {
    for (const sdm_step_counts& one : growth->steps) all.push_back(&one);
  }
  return all;
}

std::string sdm_bench_report::failure() const {
  for (const op_counts* const one : ops()) {
    if (std::string found = one->failure(); !found.empty()) return found;
  }
  for (const sdm_step_counts* const one : steps()) {
    if (std::string found = one->failure(); !found.empty()) return found;
  }
  return {};
}

sdm_bench_report run_sdm_bench(device_ref device, const sdm_bench_options& options,
                               const progress& tell) {
  require(options);
  const silence eager_runs_are_planned;
  sdm_bench_report report;
  report.device_is_apart = is_gpu(device);
  tell("copies", 0, 1);
  report.copies = measure_copies(device, std::size_t{is_gpu(device) ? 1024U : 64U} << 20);

  stream work{device};
  pool memory{device, "bench sdm"};
  byte_budget budget{byte_budget::unlimited};
  const sdm_tools with{
      memory, work, budget, options.rounds, is_gpu(device), report.copies.bytes_per_us, tell};
  const std::vector<sdm_shape> shapes =
      shapes_of(options.sizes.empty() ? sizes_for(device) : options.sizes);
  for (const sdm_shape& shape : shapes) {
    report.measured.push_back(shape.name);
    tell(shape.name + ", numbers", 0, 1);
    sdm_data data{memory, work, shape};
    for (const sdm_chunk& chunk : shape.chunks) {
      report.sizes.push_back(measure_size(with, data, chunk));
    }
    if (&shape == &shapes.back()) report.decode = measure_decode(with, data);
  }
  device.trim();
  if (options.growth) report.growth = measure_growth(with, growth_shape(is_gpu(device)));
  return report;
}

}  // namespace reprise::bench
