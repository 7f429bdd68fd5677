#include "reprise/nn/weight_average.hpp"

#include <fmt/format.h>

#include <array>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/ops/moving_average.hpp"

namespace reprise::nn {

weight_average::weight_average(const parameter_set& of, pool& memory, stream_ref stream)
    : set_{&of}, average_{memory, of.elements(), stream}, step_{make()} {
  copy(stream, read<float>{of.values()}, write<float>{average_});
}

step weight_average::make() {
  if (REPRISE_MUTANT(weight_average_is_not_put_back)) {
    declared_.overwrites("average", as_tensor(average_.all()));
  } else {
    declared_.state("average", as_tensor(average_.all()));
  }
  return step{declared_, [this](step_scope& run) {
                launch(run, moving_average, read<float>{run[words_]}, read<float>{set_->values()},
                       inout<float>{average_});
              }};
}

void weight_average::update(site at, replay_cache& through, float decay) {
  if (!(decay >= 0 && decay <= 1)) {
    throw usage_error{fmt::format(
        "weight_average: a decay of {} averages nothing; give one of 0 at least and 1 at most",
        decay)};
  }
  const std::array<float, 1> words{decay};
  through.run(at, step_, {words_.from_host(words)});
}

}  // namespace reprise::nn
