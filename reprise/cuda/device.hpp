// CUDA devices: which are here, and opening one. No CUDA type is seen from here, so every room that
// may name an implementation can include it, in a build with the CUDA half and in one without.
//
// The driver is asked once per process, at the first call, and no context is created for it. Where
// none answers, nothing of CUDA is called again. Thread safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "reprise/device/api.hpp"

namespace reprise {

// One GPU as the driver describes it.
struct cuda_row {
  std::string name;     // "cuda:0"
  std::string model;    // "NVIDIA H200"
  bool usable = false;  // open_cuda would try it
  std::string why_not;  // when it is not
  int ordinal = 0;
  int driver_version = 0;  // 13000: the newest CUDA that the driver speaks is 13.0
  int compute_major = 0;
  int compute_minor = 0;
  int sm_count = 0;
  std::size_t memory_bytes = 0;
  std::size_t l2_bytes = 0;
  std::size_t shared_per_block_optin = 0;  // the most that one block may ask for, in bytes
};

// In the driver's order; empty where there is none, and then why_no_cuda() says why.
std::vector<cuda_row> list_cuda_devices();

// One line without a full stop: "no NVIDIA driver answers"; empty when at least one GPU is listed.
std::string why_no_cuda();

// Of the toolkit that this build was made with: "13.0"; empty in a build without the CUDA half.
std::string cuda_toolkit_version();

// What the device says of itself once it is open: its arch chain is that of the code which this
// build has for it. Asks nobody.
device_traits traits_of(const cuda_row& card);

// Creates the device's primary context and leaves it to the process: a second open shares it.
// Throws usage_error, naming what to do instead, when there is no such usable device, and
// device_error or out_of_memory when the context cannot be made.
std::unique_ptr<device_api> open_cuda(int ordinal);

}  // namespace reprise
