#include "bench/replay/bare_chain.hpp"

#include <algorithm>

#include "reprise/device/enqueue.hpp"

namespace reprise::bench {

void* native_stream_of(stream_ref stream) {
  if (!raw_cuda_is_built()) return nullptr;
  void* native = nullptr;
  external(stream, "native stream", {}, [&](void* handed_out) { native = handed_out; });
  stream.synchronize();
  return native;
}

void host_block::fill(std::size_t round) {
  for (std::size_t i = 0; i < pageable.size(); ++i) {
    pageable[i] = static_cast<float>((i * 7 + round * 13) % 101) - 50.0F;
  }
  std::ranges::copy(pageable, pinned_copy.data());
}

bare_chain::bare_chain(pool& memory, stream_ref stream, const chain_sources& sources,
                       std::int64_t nodes, bool staged, void* native_stream)
    : staged_{staged},
      between_{memory, 2 * chain_elements, stream},
      input_{memory, chain_elements, stream},
      out_{memory, chain_elements, stream},
      chain_{native_stream,
             chain_memory{(staged ? input_ : sources.input).all().data(), between_.all().data(),
                          between_.all().data() + chain_elements, out_.all().data()},
             sources.gain.all().data(), nodes} {}

void bare_chain::launch(const host_block& block) {
  if (staged_) {
    chain_.copy_and_launch(block.pinned_copy.data(), input_.all().data());
  } else {
    chain_.launch();
  }
}

}  // namespace reprise::bench
