// What a CUDA body is given beside its arguments: the stream to launch on, and its workspace.
// For `.cu` files. A body only enqueues; the device checks for launch errors after it returns.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>

namespace reprise {

class cuda_call {
 public:
  cuda_call(cudaStream_t stream, std::span<std::byte> workspace)
      : stream_{stream}, workspace_{workspace} {}

  cudaStream_t stream() const { return stream_; }
  // Device scratch of the size that the cell's workspace_bytes asked for; contents are undefined.
  std::span<std::byte> workspace() const { return workspace_; }

 private:
  cudaStream_t stream_;
  std::span<std::byte> workspace_;
};

}  // namespace reprise
