// What cuda/device.hpp says in a build without the CUDA half.
#include <fmt/format.h>

#include "reprise/base/error.hpp"
#include "reprise/cuda/device.hpp"

namespace reprise {

std::vector<cuda_row> list_cuda_devices() {
  return {};
}

std::string why_no_cuda() {
  return "this build has no CUDA half: no CUDA toolkit was found, or REPRISE_CUDA was off";
}

std::string cuda_toolkit_version() {
  return {};
}

std::unique_ptr<device_api> open_cuda(int ordinal) {
  throw usage_error{
      fmt::format("cuda:{} cannot be opened: {}; build again with nvcc on PATH, or "
                  "open \"cpu\"",
                  ordinal, why_no_cuda())};
}

}  // namespace reprise
