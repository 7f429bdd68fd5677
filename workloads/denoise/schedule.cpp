// The order in which requests take turns, and what the cache must have counted in the end. Both
// come from the requests alone, so that a run can be held to the plan.
#include <algorithm>
#include <tuple>

#include "workloads/denoise/denoise.hpp"

namespace reprise::denoise {

namespace {

// One step of the loop as the cache sees it.
struct planned_step {
  bool evaluates = false;
  bool takes_noise = false;
  std::int64_t images = 0;
};

planned_step step_of(const image_request& asked, std::int64_t at) {
  const bool last = at / 2 + 1 == asked.steps;
  return {at % 2 == 0, at % 2 == 1 && asked.stochastic && !last, asked.images()};
}

// Which recordings there are, and of which weights.
class planned_cache {
 public:
  explicit planned_cache(bool records) : records_{records} {}

  void weights_moved() { ++weights_; }

  void run(const planned_step& step) {
    if (step.takes_noise) return eager("draws on the host");
    if (!records_) return eager("recording is off");
    const auto made = recorded_.find({step.evaluates, step.images});
    if (made == recorded_.end()) {
      ++counts_.captured;
      recorded_[{step.evaluates, step.images}] = weights_;
    } else if (step.evaluates && made->second != weights_) {
      // The first one that meets other weights is told so; all that are as old go with it.
      eager("fact changed");
      counts_.evicted += std::erase_if(recorded_, [&](const auto& one) {
        const auto& [key, weights] = one;
        return key.first && weights != weights_;
      });
    } else {
      ++counts_.replayed;
    }
  }

  void sleep() {
    counts_.evicted += recorded_.size();
    recorded_.clear();
  }

  const step_counts& counts() const { return counts_; }

 private:
  void eager(const char* rule) {
    ++counts_.eager;
    ++counts_.eager_reasons[rule];
  }

  bool records_;
  std::int64_t weights_ = 0;
  std::map<std::pair<bool, std::int64_t>, std::int64_t> recorded_;
  step_counts counts_;
};

}  // namespace

void take_turns(std::span<const image_request> requests, std::int64_t moves,
                const std::function<void(std::size_t request)>& step,
                const std::function<void()>& move) {
  std::int64_t total = 0;
  std::int64_t longest = 0;
  for (const image_request& asked : requests) {
    total += loop_steps(asked);
    longest = std::max(longest, loop_steps(asked));
  }
  std::int64_t done = 0;
  std::int64_t moved = 0;
  for (std::int64_t round = 0; round < longest; ++round) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (round >= loop_steps(requests[i])) continue;
      for (; moved < moves && done >= (moved + 1) * total / (moves + 1); ++moved) move();
      step(i);
      ++done;
    }
  }
}

bool sleeps_after(const denoise_options& options, std::int64_t steps) {
  return std::ranges::find(options.sleeps, steps) != options.sleeps.end();
}

step_counts planned_counts(const denoise_options& options) {
  planned_cache cache{!options.eager};
  std::vector<std::int64_t> at(options.requests.size());
  std::int64_t done = 0;
  take_turns(
      options.requests, options.weight_moves,
      [&](std::size_t i) {
        cache.run(step_of(options.requests[i], at[i]++));
        if (sleeps_after(options, ++done)) cache.sleep();
      },
      [&] { cache.weights_moved(); });
  return cache.counts();
}

}  // namespace reprise::denoise
