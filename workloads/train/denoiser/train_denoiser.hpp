// Training of the denoiser that ships with Reprise, on a CPU, by flow matching: `reprise run train
// denoiser`. The same seed gives the same file, byte for byte, on any number of threads.
//
// With data x and noise e, the path from noise to data is x_t = (1 - t) e + t x, its velocity x - e
// (Lipman, Chen, Ben-Hamu, Nickel and Le, "Flow Matching for Generative Modeling", 2022, with the
// straight path of their optimal transport). The network predicts x: a residual stream that is
// narrower than an image can hold clothes, and not noise. Since x - e = (x - x_t) / (1 - t), the
// loss on velocities is
//
//   mean over t, x and e of  |net(x_t, t, class) - x|^2 / max(1 - t, 0.1)^2,  t uniform on [0, 1)
//
// and one label in ten is replaced by "no class", for guidance (Ho and Salimans, 2022).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>

namespace reprise::denoise {

struct train_options {
  std::filesystem::path config;  // a config.json: the network's sizes
  std::filesystem::path out;     // gets model.safetensors, and config.json beside it
  std::filesystem::path data;    // of the data set (workloads/train/data.hpp)
  std::uint64_t seed = 1;
  std::int64_t steps = 30000;
  std::int64_t batch = 256;
  float rate = 1e-3F;
  int threads = 2;
};

struct train_report {
  float loss = 0;         // the mean of the last steps
  double seconds = 0;     // of the steps
  std::size_t bytes = 0;  // of model.safetensors
};

// Told after each step, with the mean loss of the last ones.
using train_listener = std::function<void(std::int64_t done, float loss)>;

// The folder is made where it is missing; its two files are written whole or not at all, at the
// end. Throws usage_error, before any work, for a configuration or data that do not fit or a folder
// that cannot be written.
train_report train_denoiser(const train_options& options, const train_listener& listen = {});

}  // namespace reprise::denoise
