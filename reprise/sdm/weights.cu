// sdm_weights on CUDA: a block for each chunk, a thread for each run, which it walks twice.
//
// Runs are short but for those of slots that every token has; neighbouring runs lie side by side in
// `order`, so that the walk of a warp reads whole lines of that, and gathers the rest.
#include <algorithm>

#include "reprise/cuda/call.cuh"
#include "reprise/sdm/number.hpp"
#include "reprise/sdm/weights.hpp"

namespace reprise::REPRISE_BODIES::sdm {

namespace {

constexpr int most_threads = 1024;

struct weights_arrays {
  const std::int32_t *order, *runs;
  const float *k_val, *g, *q_val;
  double* level;
  float *head, *tail, *keep;
};

__global__ void __launch_bounds__(most_threads) weights_grid(weights_arrays all, sdm_sizes sizes) {
  const std::int64_t chunk = blockIdx.x;
  const std::int64_t p = chunk / sizes.chunks();
  const std::int64_t n = chunk % sizes.chunks();
  const std::int64_t token = p * sizes.tokens + n * sizes.chunk;
  const auto events = static_cast<int>(sizes.events());
  const auto token_events = static_cast<int>(sizes.token_events());
  const auto writes = static_cast<int>(sizes.writes);
  const auto reads = static_cast<int>(sizes.reads);
  const bool is_shared = sizes.decays == 1;
  const std::int32_t* const order = all.order + chunk * events;
  const std::int32_t* const runs = all.runs + chunk * (events + 1);
  const float* const k_val = all.k_val + token * writes;
  const float* const g = all.g + token * sizes.decays;
  const float* const q_val = all.q_val + token * reads;
  double* const level = all.level + chunk * events;
  float* const head = all.head + chunk * events;
  float* const tail = all.tail + chunk * events;
  float* const keep = all.keep + chunk * events;

  for (int i = threadIdx.x; i < events; i += blockDim.x) {
    level[i] = 0.0;
    head[i] = 0.0f;
    tail[i] = 0.0f;
  }
  __syncthreads();  // what is zero may be another thread's to fill

  for (int run = threadIdx.x; run < events; run += blockDim.x) {
    const int begin = runs[run];
    const int end = runs[run + 1];
    if (begin == end) {
      keep[run] = 0.0f;
      continue;
    }
    double sum = 0.0;
    for (int i = begin; i < end; ++i) {
      const int event = order[i];
      const int t = event / token_events;
      const int w = event - t * token_events;
      float weight;
      if (w < writes) {
        weight = k_val[t * writes + w];
        sum =
            math::add(sum, summed_decay(static_cast<double>(is_shared ? g[t] : g[t * writes + w])));
      } else {
        weight = q_val[t * reads + (w - writes)];
      }
      level[event] = sum;
      head[event] = math::mul(weight, decay_between<float>(sum, 0.0));
    }
    for (int i = begin; i < end; ++i) {
      const int event = order[i];
      const int t = event / token_events;
      const int w = event - t * token_events;
      if (w >= writes) continue;
      tail[event] = math::mul(k_val[t * writes + w], decay_between<float>(sum, level[event]));
    }
    keep[run] = decay_between<float>(sum, 0.0);
  }
}

}  // namespace

template <class X>
void weights_cuda(cuda_call& call, read<std::int32_t> order, read<std::int32_t> runs, read<X> k_val,
                  read<X> g, read<X> q_val, write<double> level, write<X> head, write<X> tail,
                  write<X> keep, sdm_sizes sizes) {
  check_weights(order, runs, k_val, g, q_val, level, head, tail, keep, sizes);
  if (sizes.tokens == 0) return;
  const auto blocks = static_cast<unsigned>(sizes.streams * sizes.chunks());
  const auto threads =
      static_cast<unsigned>(std::min<std::int64_t>(most_threads, (sizes.events() + 31) / 32 * 32));
  const weights_arrays all{order.data(), runs.data(), k_val.data(), g.data(),   q_val.data(),
                           level.data(), head.data(), tail.data(),  keep.data()};
  weights_grid<<<blocks, threads, 0, call.stream()>>>(all, sizes);
}

template void weights_cuda(cuda_call&, read<std::int32_t>, read<std::int32_t>, read<float>,
                           read<float>, read<float>, write<double>, write<float>, write<float>,
                           write<float>, sdm_sizes);

}  // namespace reprise::REPRISE_BODIES::sdm
