// The weights of a denoiser on a device, as parameters that steps use, and moving them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "reprise/device/memory.hpp"
#include "reprise/replay/signature.hpp"
#include "workloads/denoise/denoiser_config.hpp"

namespace reprise::denoise {

// Matrices are [out, in], as in checkpoints: y = x W^T + bias.
struct layer_weights {
  parameter matrix, bias;
};

struct norm_weights {
  parameter gain, bias;
};

struct block_weights {
  norm_weights norm;
  layer_weights up;
  parameter condition;
  layer_weights down;
};

// All f32, whatever the file holds. Steps refer to the parameters, so it stays where it is.
class denoiser_weights {
 public:
  // Reads model.safetensors and copies it to the device in the order of the stream. Throws
  // usage_error, one line that names the file or tensor, when one is missing, unknown, or of a
  // shape that the configuration does not give it.
  denoiser_weights(pool& into, stream_ref stream, const std::filesystem::path& folder,
                   const denoiser_config& config);
  denoiser_weights(const denoiser_weights&) = delete;
  denoiser_weights& operator=(const denoiser_weights&) = delete;

  // All of them to new storage, with the same values from the host again and versions moved on:
  // what a trainer's next weights are to whoever samples. The old storage is freed in the order of
  // the stream, which is that of the steps that read it.
  void move(stream_ref stream);

  // Says in the signature of a step that it uses them.
  void declare(signature& in) const;

  layer_weights input, time_in, time_out, output;
  parameter classes;  // [classes + 1, condition width]; the last row is that of no class
  std::vector<block_weights> blocks;
  norm_weights norm;

 private:
  struct place {
    parameter* into;
    std::string name;  // in the file
    dims shape;
    std::vector<float> values;
    block memory;
  };

  void add_places(const denoiser_config& config);
  void upload(place& at, stream_ref stream);

  pool* pool_;
  std::vector<place> places_;
};

}  // namespace reprise::denoise
