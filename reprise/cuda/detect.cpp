// Asks the driver which GPUs are here. Counting and describing them creates no context, so a
// process that lists devices and then works on the CPU holds no memory of any card.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "reprise/cuda/arch.hpp"
#include "reprise/cuda/check.hpp"
#include "reprise/cuda/device.hpp"

namespace reprise {

namespace {

struct detection {
  std::vector<cuda_row> rows;
  std::string why_none;
};

// 13000 is "13.0"
std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string why_no_device(cudaError_t status, int driver_version) {
  if (status == cudaErrorInsufficientDriver && driver_version != 0) {
    return fmt::format(
        "the NVIDIA driver speaks CUDA {} and this build needs {}; update the driver",
        version_text(driver_version), version_text(CUDART_VERSION));
  }
  if (status == cudaErrorInsufficientDriver || status == cudaErrorStubLibrary) {
    return "no NVIDIA driver answers";
  }
  if (status == cudaErrorNoDevice || status == cudaSuccess) {
    return "the NVIDIA driver shows no GPU to this process; see CUDA_VISIBLE_DEVICES";
  }
  return "the NVIDIA driver answers " + cuda::text_of(status);
}

int attribute(cudaDeviceAttr which, int ordinal, cudaError_t& status) {
  int value = 0;
  if (status == cudaSuccess) status = cudaDeviceGetAttribute(&value, which, ordinal);
  return value;
}

cuda_row describe_card(int ordinal, int driver_version) {
  cuda_row row;
  row.name = fmt::format("cuda:{}", ordinal);
  row.ordinal = ordinal;
  row.driver_version = driver_version;

  cudaDeviceProp properties{};
  cudaError_t status = cudaGetDeviceProperties(&properties, ordinal);
  const auto ask = [&](cudaDeviceAttr which) { return attribute(which, ordinal, status); };
  row.model = properties.name;
  row.memory_bytes = properties.totalGlobalMem;
  row.compute_major = ask(cudaDevAttrComputeCapabilityMajor);
  row.compute_minor = ask(cudaDevAttrComputeCapabilityMinor);
  row.sm_count = ask(cudaDevAttrMultiProcessorCount);
  row.l2_bytes = static_cast<std::size_t>(ask(cudaDevAttrL2CacheSize));
  row.shared_per_block_optin =
      static_cast<std::size_t>(ask(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  const int mode = ask(cudaDevAttrComputeMode);

  if (status != cudaSuccess) {
    cudaGetLastError();
    row.why_not = "the driver does not describe it: " + cuda::text_of(status);
  } else if (cuda::code_for({row.compute_major, row.compute_minor}, cuda::this_build()) ==
             nullptr) {
    row.why_not =
        fmt::format("its compute capability is {}.{}, and this build has {}", row.compute_major,
                    row.compute_minor, cuda::text_of(cuda::this_build()));
  } else if (mode == cudaComputeModeProhibited) {
    row.why_not = "its compute mode is \"prohibited\"; nvidia-smi -c DEFAULT allows it again";
  }
  row.usable = row.why_not.empty();
  return row;
}

detection detect() {
  detection found;
  int count = 0;
  int driver_version = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaDriverGetVersion(&driver_version);
  cudaGetLastError();
  if (status != cudaSuccess || count == 0) {
    found.why_none = why_no_device(status, driver_version);
    return found;
  }
  for (int i = 0; i != count; ++i) found.rows.push_back(describe_card(i, driver_version));
  return found;
}

// Once: a driver that does not answer is not asked again, and a list does not change under people.
const detection& detected() {
  static const detection found = detect();
  return found;
}

}  // namespace

std::vector<cuda_row> list_cuda_devices() {
  return detected().rows;
}

std::string why_no_cuda() {
  return detected().why_none;
}

std::string cuda_toolkit_version() {
  return version_text(CUDART_VERSION);
}

}  // namespace reprise
