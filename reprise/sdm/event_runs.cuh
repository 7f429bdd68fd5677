// The gradients of events on CUDA: how a run is gone through. For gradients.cu.
//
// Most runs are short, and a thread takes one each: 32 of them to a warp. A longer one is taken by
// its whole warp, 32 writes at a time, each with a lane: the events of the run travel along the
// lanes one after the other, and with each the sum over the writes before it, to which every lane
// adds the term of its write. So each sum is formed in the order of time, as by one thread, while
// 32 pairs are worked on at once. Neighbouring runs go to different warps, so that long ones are
// spread over the card.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "reprise/ops/math.hpp"
#include "reprise/sdm/gradient_sizes.hpp"
#include "reprise/sdm/number.hpp"

namespace reprise::REPRISE_BODIES::sdm {

inline constexpr int run_warps = 8;  // of a block
inline constexpr int short_run = 8;  // events that a thread goes through alone
inline constexpr unsigned whole_warp = 0xffffffffu;

struct event_arrays {
  const std::int32_t* order;
  const std::int32_t* place;
  const std::int32_t* runs;
  const float* k_val;
  const float* q_val;
  const double* level;
  const float* of_state;
  const float* of_cotangent;
  const float* of_both;
  const float* of_readings;
  const float* of_errors;
  float* dk;
  float* dq;
  float* dg_by_write;
  sdm_sizes sizes;
};

// An event as the gradients see it.
struct weighed_event {
  double level;
  float weight;        // as a later one: c of a read, -k of a write
  std::int32_t token;  // in its chunk; ~token of a write
  std::int32_t at;     // of its gradients
};

struct chunk_events {
  const event_arrays& of;
  std::int64_t chunk;
  std::int64_t first_event;  // of the chunk, among those of all
  std::int64_t first_token;
  std::int64_t tokens;

  __device__ chunk_events(const event_arrays& arrays, std::int64_t which)
      : of{arrays}, chunk{which}, first_event{which * arrays.sizes.events()} {
    const std::int64_t n = which % of.sizes.chunks();
    first_token = which / of.sizes.chunks() * of.sizes.tokens + n * of.sizes.chunk;
    tokens = of.sizes.tokens_in(n);
  }

  __device__ double level(std::int32_t event) const { return of.level[first_event + event]; }

  __device__ bool writes(std::int32_t event) const {
    return event % static_cast<std::int32_t>(of.sizes.token_events()) < of.sizes.writes;
  }

  __device__ weighed_event weighed(std::int32_t event) const {
    const event_place is = place_of_event(of.sizes, first_token, event);
    const auto token = static_cast<std::int32_t>(is.token);
    return {level(event), is.writes ? -of.k_val[is.at] : of.q_val[is.at],
            is.writes ? ~token : token, static_cast<std::int32_t>(is.at)};
  }

  // Of dot products that are left in parts.
  __device__ float whole(const float* parts, std::int64_t at) const {
    const std::int64_t count = parts_of(of.sizes.width);
    float sum = 0.0f;
    for (std::int64_t i = 0; i < count; ++i) sum = math::add(sum, parts[at * count + i]);
    return sum;
  }

  // The term of M in before(x).
  __device__ float from_state(double of_level, const float* parts, std::int64_t at) const {
    return math::add(0.0f, math::mul(decay_between<float>(of_level, 0.0), whole(parts, at)));
  }

  // <x, p> of two events, p a write before x.
  __device__ float product(std::int32_t x_token, std::int32_t p_token) const {
    const bool writes = x_token < 0;
    const std::int64_t row = chunk * of.sizes.chunk + (writes ? ~x_token : x_token);
    return (writes ? of.of_errors : of.of_readings)[row * of.sizes.chunk + ~p_token];
  }
};

// Run r, the `count` events from `events` on, at most short_run of them, by one thread.
__device__ inline void run_alone(const chunk_events& in, std::int64_t r, const std::int32_t* events,
                                 int count) {
  weighed_event each[short_run];
  float before[short_run];
  for (int i = 0; i < count; ++i) {
    each[i] = in.weighed(events[i]);
    before[i] = in.from_state(each[i].level, in.of.of_state, in.first_event + events[i]);
  }
  const double end = each[count - 1].level;
  float before_end = in.from_state(end, in.of.of_both, in.first_event + r);
  for (int i = 0; i < count; ++i) {
    const weighed_event p = each[i];
    const float own = before[i];
    if (p.token >= 0) {
      in.of.dq[p.at] = own;
      continue;
    }
    const float k = -p.weight;
    float after = 0.0f;
    float decay = math::add(0.0f, math::mul(p.weight, own));
    for (int j = i + 1; j < count; ++j) {
      const float c = each[j].weight;
      const float e = decay_between<float>(each[j].level, p.level);
      const float both = in.product(each[j].token, p.token);
      decay = math::add(decay, math::mul(c, before[j]));
      after = math::add(after, math::mul(math::mul(c, e), both));
      before[j] = math::add(before[j], math::mul(math::mul(k, e), both));
    }
    const float e = decay_between<float>(end, p.level);
    const float both = in.whole(in.of.of_cotangent, in.first_event + events[i]);
    decay = math::add(decay, before_end);
    after = math::add(after, math::mul(e, both));
    before_end = math::add(before_end, math::mul(math::mul(k, e), both));
    in.of.dk[p.at] = math::sub(after, own);
    in.of.dg_by_write[p.at] = decay;
  }
}

// The events on their way along the lanes: as many as there are lanes, and those that come next.
struct travellers {
  weighed_event event[64];
  float before[64];       // the sum that it sets out with
  std::int32_t mine[32];  // the writes that the lanes have, by their place in the run
};

// The places of the next 32 writes from `from` on, or of those that there are: how many.
__device__ inline int next_writes(const chunk_events& in, const std::int32_t* events, int count,
                                  int from, std::int32_t (&to)[32]) {
  const int lane = threadIdx.x % 32;
  int found = 0;
  for (int begin = from; begin < count && found < 32; begin += 32) {
    const int i = begin + lane;
    const bool writes = i < count && in.writes(events[i]);
    const unsigned mask = __ballot_sync(whole_warp, writes);
    const int rank = found + __popc(mask & ((1u << lane) - 1));
    if (writes && rank < 32) to[rank] = i;
    found += __popc(mask);
  }
  __syncwarp();
  return min(found, 32);
}

// A run of any length, by a whole warp. before(x) lies in dq or dk between the passes.
__device__ inline void run_together(const chunk_events& in, std::int64_t r,
                                    const std::int32_t* events, int count, travellers& on) {
  const int lane = threadIdx.x % 32;
  const double end = in.level(events[count - 1]);
  for (int i = lane; i < count; i += 32) {
    const weighed_event x = in.weighed(events[i]);
    (x.token < 0 ? in.of.dk : in.of.dq)[x.at] =
        in.from_state(x.level, in.of.of_state, in.first_event + events[i]);
  }
  float before_end = in.from_state(end, in.of.of_both, in.first_event + r);  // of every lane
  __syncwarp();

  int from = 0;
  while (const int lanes = next_writes(in, events, count, from, on.mine)) {
    const int last = lanes - 1;
    const int first = on.mine[0];
    const int mine = on.mine[min(lane, last)];
    from = on.mine[last] + 1;
    const weighed_event p = in.weighed(events[mine]);
    const float k = -p.weight;
    const float of_cotangent = in.whole(in.of.of_cotangent, in.first_event + events[mine]);
    const int to_go = count + 1 - first;  // events from the first write on, and behind them the end
    float own = 0.0f;
    float after = 0.0f;
    float decay = 0.0f;
    float leaving = 0.0f;  // before(x) of the event that goes on to the next lane
    for (int step = 0; step < to_go + last; ++step) {
      if (step % 32 == 0) {
        __syncwarp();
        const int coming = step + lane;
        const int i = first + coming;
        if (i < count) {
          const weighed_event x = in.weighed(events[i]);
          on.event[coming % 64] = x;
          on.before[coming % 64] = (x.token < 0 ? in.of.dk : in.of.dq)[x.at];
        } else if (i == count) {
          on.event[coming % 64] = {end, 1.0f, 0, 0};
          on.before[coming % 64] = before_end;
        }
        __syncwarp();
      }
      float before = __shfl_up_sync(whole_warp, leaving, 1);
      const int here = step - lane;
      if (lane <= last && here >= 0 && here < to_go) {
        const weighed_event x = on.event[here % 64];
        const int i = first + here;
        if (lane == 0) before = on.before[here % 64];
        if (i == mine) own = before;
        if (i >= mine) decay = math::add(decay, math::mul(x.weight, before));
        if (i > mine) {
          const float e = decay_between<float>(x.level, p.level);
          const float both = i == count ? of_cotangent : in.product(x.token, p.token);
          after = math::add(after, math::mul(math::mul(x.weight, e), both));
          before = math::add(before, math::mul(math::mul(k, e), both));
        }
        if (lane == last) {  // of a write up to `mine` its lane has the sum
          if (i == count) {
            before_end = before;
          } else if (x.token >= 0) {
            in.of.dq[x.at] = before;
          } else if (i > mine) {
            in.of.dk[x.at] = before;
          }
        }
      }
      leaving = before;
    }
    if (lane <= last) {
      in.of.dk[p.at] = math::sub(after, own);
      in.of.dg_by_write[p.at] = decay;
    }
    before_end = __shfl_sync(whole_warp, before_end, last);
    __syncwarp();
  }
}

// Warp w of a chunk's has its runs w, w + warps_of_chunk and so on, one a lane, and 32 neighbouring
// events that may be left out.
__global__ void __launch_bounds__(run_warps * 32)
    event_grads_grid(event_arrays of, std::int64_t chunks, std::int64_t warps_of_chunk) {
  __shared__ travellers on_the_way[run_warps];
  const std::int64_t warp = std::int64_t{blockIdx.x} * run_warps + threadIdx.x / 32;
  if (warp >= chunks * warps_of_chunk) return;  // whole warps leave
  const int lane = threadIdx.x % 32;
  const chunk_events in{of, warp / warps_of_chunk};
  const std::int64_t first = warp % warps_of_chunk;

  const std::int64_t event = first * 32 + lane;
  if (event < of.sizes.events() && of.place[in.first_event + event] == -1) {
    const event_place out =
        place_of_event(of.sizes, in.first_token, static_cast<std::int32_t>(event));
    if (out.token < in.tokens) {
      (out.writes ? of.dk : of.dq)[out.at] = 0.0f;
      if (out.writes) of.dg_by_write[out.at] = 0.0f;
    }
  }

  const std::int64_t run = first + lane * warps_of_chunk;
  std::int32_t begin = 0;
  std::int32_t count = 0;
  if (run < of.sizes.events()) {
    const std::int32_t* const runs = of.runs + in.chunk * (of.sizes.events() + 1) + run;
    begin = runs[0];
    count = runs[1] - begin;
  }
  const std::int32_t* const order = of.order + in.first_event;
  if (count > 0 && count <= short_run) run_alone(in, run, order + begin, count);
  unsigned longer = __ballot_sync(whole_warp, count > short_run);
  while (longer != 0) {
    const int from = __ffs(static_cast<int>(longer)) - 1;
    longer &= longer - 1;
    const std::int32_t its_begin = __shfl_sync(whole_warp, begin, from);
    const std::int32_t its_count = __shfl_sync(whole_warp, count, from);
    run_together(in, first + from * warps_of_chunk, order + its_begin, its_count,
                 on_the_way[threadIdx.x / 32]);
  }
}

}  // namespace reprise::REPRISE_BODIES::sdm
