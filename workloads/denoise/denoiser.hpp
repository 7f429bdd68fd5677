// A denoiser and its evaluation as a step.
//
// The network predicts an image p from a noisy one x, a time t in [0, 1) and a class c:
//
//   g = gelu(time_out(gelu(time_in(embedding(t)))) + classes[c])
//   h = input(x);  for each block:  h += down(gelu(up(norm(h)) + condition(g)))
//   p = output(norm(h))
//
// with layer norms (Ba et al., 2016), GELU (Hendrycks and Gimpel, 2016) and the time embedding of
// ops/timestep_embedding.hpp. An evaluation runs two branches, with the class and without one, and
// guides from the second to the first (ops/flow.hpp). All arithmetic is f32.
#pragma once

#include <cstdint>

#include "reprise/replay/step.hpp"
#include "workloads/denoise/denoiser_weights.hpp"

namespace reprise::denoise {

// Everything the steps refer to; outlives them.
struct denoiser {
  denoiser(pool& into, stream_ref stream, const std::filesystem::path& folder)
      : config{read_denoiser_config(folder / "config.json")},
        weights{into, stream, folder, config} {}

  denoiser_config config;
  denoiser_weights weights;
};

struct evaluation {
  input<float> x;               // [images, pixels]
  input<std::int32_t> classes;  // [images]
  input<float> times;           // [images]
  input<float> guidance;        // [1]: 0 without class, 1 with it, more beyond it
  input<float> factors;         // [2], of flow_drift
  output<float> drift;          // [images, pixels]
  step body;
};

evaluation evaluation_of(const denoiser& model);

}  // namespace reprise::denoise
