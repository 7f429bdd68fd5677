// The raw peer in a build without CUDA: not there. Nobody makes one who has asked first.
#include "bench/replay/raw_cuda.hpp"
#include "reprise/base/error.hpp"

namespace reprise::bench {

namespace {

[[noreturn]] void refuse() {
  throw error{"the raw CUDA peer is not in this build; build with a CUDA toolkit"};
}

}  // namespace

bool raw_cuda_is_built() {
  return false;
}

struct raw_chain::state {};
raw_chain::raw_chain(void*, const chain_memory&, const float*, std::int64_t) {
  refuse();
}
raw_chain::~raw_chain() = default;
void raw_chain::launch() {
  refuse();
}
void raw_chain::copy_and_launch(const float*, float*) {
  refuse();
}

struct raw_timer::state {};
raw_timer::raw_timer(void*) {
  refuse();
}
raw_timer::~raw_timer() = default;
void raw_timer::start() {
  refuse();
}
void raw_timer::stop() {
  refuse();
}
double raw_timer::us() const {
  refuse();
}

}  // namespace reprise::bench
