// Sampling images by a flow, as a loop: from noise at t = 0 to images at t = 1 in `steps` equal
// steps of time, each of which is two steps of the loop: evaluate the drift, then go along it.
//
// With the prediction p of the model, and eta = 0 for the differential equation or 1 for the
// stochastic one (Song et al., "Score-Based Generative Modeling through Stochastic Differential
// Equations", 2021, with noise 2 eta (1 - t) and the score (t v - x) / (1 - t) of the straight
// path):
//
//   v = (p - x) / (1 - t),  dx = (v + eta (t v - x)) dt + sqrt(2 eta (1 - t)) dW
//
// The last step of time takes no noise, since nobody would remove it. A stochastic step draws its
// noise on the host, so it may not be captured; what it draws depends on the request's seed and the
// step alone. Everything that is known of a request is in the request.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "reprise/loop/loop.hpp"
#include "workloads/denoise/denoiser.hpp"

namespace reprise::denoise {

struct image_request {
  std::int64_t steps = 20;            // of time
  std::vector<std::int32_t> classes;  // of each image; null_class() for none
  float guidance = 2;
  std::uint64_t seed = 0;
  bool stochastic = false;

  std::int64_t images() const { return static_cast<std::int64_t>(classes.size()); }
};

// Told how each step of the loop ran, as the loop takes its result.
using step_listener = std::function<void(const step_result&)>;

class sampler {
 public:
  static constexpr bool may_record = true;

  // x += drift dt, in memory of the run.
  struct euler {
    input<float> x, drift, dt;
    output<float> next;
    step body;
  };
  // The same with noise, which this request's body draws.
  struct stochastic {
    input<float> x, drift, dt, sigma;
    output<float> next;
    step body;
  };

  // The state of one request. Copies nothing of another's; moved with its buffers.
  struct request {
    image_request asked;
    buffer<float> x;      // [images, pixels]
    buffer<float> drift;  // [images, pixels]
    std::int64_t done = 0;
    bool evaluated = false;  // the drift at x is there

    // Host memory that the bindings refer to, and the bindings.
    std::vector<float> times;
    std::vector<float> words;
    std::vector<binding> with;

    std::shared_ptr<std::int64_t> drawing;  // which step the noise is for
    std::optional<stochastic> shaken;
  };

  // Steps run on `stream`; all outlive the sampler.
  sampler(stream_ref stream, const denoiser& model, step_listener listen = {});

  // Draws the noise that the request begins with.
  request begin(pool& into, image_request asked) const;

  std::optional<step_call> next(request& r);
  void advance(request& r, const step_result& done);

 private:
  step_call evaluate(request& r);
  step_call go_along(request& r);

  stream_ref stream_;
  const denoiser& model_;
  step_listener listen_;
  evaluation evaluation_;
  euler euler_;
};

}  // namespace reprise::denoise
