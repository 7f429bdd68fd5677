// Text from a small drawn model through the workload and the real runtime: what the simulated GPU
// makes of it has the bits of a plain run on `cpu`.
#include "workloads/decode/llama.hpp"

#include <cstdint>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "reprise/platform/platform.hpp"
#include "scenarios/lists.hpp"
#include "scenarios/steps.hpp"
#include "workloads/decode/batching.hpp"

namespace reprise::scenarios {

namespace {

using tokens = std::vector<std::vector<std::int32_t>>;

constexpr std::int64_t most_tokens = 12;

decode::model_config small_model() {
  decode::model_config c;
  c.vocabulary = 48;
  c.width = 32;
  c.inner_width = 64;
  c.layers = 2;
  c.heads = 4;
  c.kv_heads = 2;
  c.head_dim = 8;
  c.context = 32;
  c.norm_epsilon = 1e-5F;
  c.rotary_base = 10000;
  c.tied_output = true;
  return c;
}

// Three prompts, two at a time, so that requests join and leave.
tokens decoded(device_ref dev, bool record) {
  const decode::model_config config = small_model();
  stream s{dev};
  pool memory{dev, "model"};
  const decode::llama model{
      memory, s,
      config, decode::random_weights(memory, s, config, decode::weight_storage::f32, 7),
      2,      config.context};
  replay_cache cache{dev, {.record = record}};
  decode::batch_options options;
  options.sizes = {1, 2};
  options.max_tokens = most_tokens;
  decode::batch_runner runner{s, model, cache, options};
  std::vector<decode::request> requests =
      decode::make_requests({{1, 2, 3, 4, 5}, {40, 7}, {9, 9, 9}}, config);
  runner.run(requests, [](std::size_t, const decode::request&) {});
  tokens said;
  for (decode::request& asked : requests) said.push_back(std::move(asked.generated));

  // Two of them end together, then the third decodes alone; each has its first token from prefill.
  const std::uint64_t alone = most_tokens - 1;
  const std::uint64_t together = most_tokens - 1;
  if (record) {
    require_counts(cache.counts(), 2, alone + together - 2, 3);
  } else {
    require_counts(cache.counts(), 0, 0, alone + together + 3);
  }
  s.synchronize();
  return said;
}

// Once per process, on a thread of its own: a device that owns time knows nothing of it.
const tokens& decoded_on_cpu() {
  static const tokens said = [] {
    tokens made;
    std::exception_ptr failed;
    std::thread{[&] {
      try {
        const device cpu = open_device("cpu", {.threads = 1}, scenario_kernels());
        made = decoded(cpu, false);
      } catch (...) {
        failed = std::current_exception();
      }
    }}.join();
    if (failed) std::rethrow_exception(failed);
    return made;
  }();
  return said;
}

void decode_text(device_ref dev) {
  const tokens said = decoded(dev, true);
  // A GPU has its own order of sums, and is held to its own eager run.
  const tokens plain = dev.bodies() == device_kind::cpu ? decoded_on_cpu() : decoded(dev, false);
  require(said == plain, "replayed decode steps gave other tokens than a plain run");
  for (const std::vector<std::int32_t>& of_one : said) {
    require_equal(static_cast<std::int64_t>(of_one.size()), most_tokens, "tokens of a request");
  }
}

}  // namespace

std::vector<scenario> decode_scenarios() {
  return {
      {"decode",
       "Three prompts through a model of two layers give the tokens of a plain run on the cpu.",
       decode_text,
       {},
       {}},
  };
}

}  // namespace reprise::scenarios
