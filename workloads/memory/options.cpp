#include "workloads/memory/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "reprise/base/error.hpp"
#include "reprise/sdm/sizes.hpp"

namespace reprise::memory {

namespace {

void need(std::string_view option, std::int64_t is, std::int64_t least, std::int64_t most,
          std::string_view why = "") {
  if (is >= least && is <= most) return;
  throw usage_error{
      fmt::format("{} {}: give a whole number from {} to {}{}", option, is, least, most, why)};
}

}  // namespace

layer_span span_of(const memory_options& options, std::int64_t i) {
  const std::int64_t each = network_layers(options) / options.regions;
  const std::int64_t more = network_layers(options) % options.regions;
  const std::int64_t first = i * each + std::min(i, more);
  return {first, first + each + (i < more ? 1 : 0)};
}

void check(const memory_options& o) {
  constexpr std::int64_t many = std::int64_t{1} << 20;
  need("--steps", o.steps, 1, many);
  need("--batch", o.batch, 1, 4096);
  need("--context", o.context, 1, many);
  need("--layers", o.layers, 1, 256);
  need("--width", o.width, 1, 8192);
  need("--side", o.side, 1, 1024);
  const std::int64_t slots = o.side * o.side;
  const std::int64_t most = std::min<std::int64_t>(slots, 128);
  const std::string_view of_slots =
      slots < 128 ? "; a token's slots are all different, and there are side * side" : "";
  need("--writes", o.writes, 1, most, of_slots);
  need("--reads", o.reads, 1, most, of_slots);
  need("--key-width", o.key_width, 1, 1024);
  need("--chunk", o.chunk, 1, most_sdm_events / (o.writes + o.reads),
       "; a chunk has chunk * (writes + reads) events, 16384 at most");
  need("--accumulate", o.accumulate, 1, 4096);
  need("--regions", o.regions, 1, network_layers(o), "; no more than the network has layers");
  need("--sample", o.sample, 0, many);
  if (o.storage != dtype::f32 && o.storage != dtype::bf16) {
    throw usage_error{fmt::format("--storage {}: give f32 or bf16", name_of(o.storage))};
  }
  if (!(o.learning_rate > 0 && o.learning_rate <= 1)) {
    throw usage_error{"--learning-rate: give a number above 0 and at most 1, such as 0.01"};
  }
  if (!(o.temperature >= 0 && o.temperature <= 100)) {
    throw usage_error{"--temperature: give a number from 0 (the likeliest byte) to 100"};
  }
  if (o.sample > 0 && o.prompt.empty()) {
    throw usage_error{"--prompt: the sample goes on from a byte at least; give one, or --sample 0"};
  }
  if (o.eager && o.verify) {
    throw usage_error{"--verify compares with the run that --eager makes; leave one out"};
  }
  sdm_sizes sizes{.streams = o.batch,
                  .slots = slots,
                  .width = o.width,
                  .tokens = o.context,
                  .writes = o.writes,
                  .reads = o.reads,
                  .chunk = o.chunk};
  check_sizes(sizes);
}

sdm_layer_options layer_options(const memory_options& o, std::int64_t streams) {
  return {.streams = streams,
          .side = o.side,
          .width = o.width,
          .key_width = o.key_width,
          .writes = o.writes,
          .reads = o.reads,
          .chunk = o.chunk,
          .rows = o.rows,
          .wide_bank_grad = o.wide_bank_grad};
}

}  // namespace reprise::memory
