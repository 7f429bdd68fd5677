// bring on CUDA: 16 bytes a thread where both sides are aligned, else four, else one.
//
// Floor: the bytes, once read and once written; small ones are one node of 0.8 us.
#include <algorithm>

#include "reprise/cuda/call.cuh"
#include "reprise/grad/bring.hpp"

namespace reprise::REPRISE_BODIES {

namespace {

constexpr unsigned threads = 256;

unsigned blocks_for(std::size_t items) {
  constexpr std::size_t most = 2048;  // enough to fill any card
  return static_cast<unsigned>(std::clamp<std::size_t>((items + threads - 1) / threads, 1, most));
}

template <class Unit>
__device__ std::size_t copy_units(const std::uint8_t* from, std::uint8_t* to, std::size_t bytes) {
  const std::size_t stride = std::size_t{gridDim.x} * threads;
  const std::size_t units = bytes / sizeof(Unit);
  for (std::size_t i = blockIdx.x * std::size_t{threads} + threadIdx.x; i < units; i += stride) {
    reinterpret_cast<Unit*>(to)[i] = reinterpret_cast<const Unit*>(from)[i];
  }
  return units * sizeof(Unit);
}

// Where the two lie is known on the device alone, so that is where their alignment is looked at.
__global__ void __launch_bounds__(threads)
    bring_grid(read<std::uint8_t> behind, write<std::uint8_t> to) {
  const std::uint8_t* const from = behind.followed().data();
  std::uint8_t* const out = to.followed().data();  // null: nowhere
  if (out == nullptr) return;
  const auto both = reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(out);
  std::size_t done = 0;
  if (both % sizeof(uint4) == 0) {
    done = copy_units<uint4>(from, out, to.size());
  } else if (both % sizeof(std::uint32_t) == 0) {
    done = copy_units<std::uint32_t>(from, out, to.size());
  }
  copy_units<std::uint8_t>(from + done, out + done, to.size() - done);
}

}  // namespace

void bring_cuda(cuda_call& call, read<std::uint8_t> from, write<std::uint8_t> to) {
  check_bring(from.size(), to.size());
  if (to.size() == 0) return;
  bring_grid<<<blocks_for(to.size() / 16), threads, 0, call.stream()>>>(from, to);
}

}  // namespace reprise::REPRISE_BODIES
