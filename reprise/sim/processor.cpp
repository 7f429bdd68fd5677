#include "reprise/sim/processor.hpp"

#include <algorithm>
#include <fstream>
#include <thread>

#include <sched.h>

namespace reprise::sim {

std::vector<std::string> processor_arch_chain() {
  std::vector<std::string> chain;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    chain.emplace_back("avx512");
  }
  if (__builtin_cpu_supports("avx2")) chain.emplace_back("avx2");
#endif
  chain.emplace_back("generic");
  return chain;
}

std::string processor_model() {
  std::ifstream info{"/proc/cpuinfo"};
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t at = line.find(':');
    if (at != std::string::npos && at + 2 < line.size()) return line.substr(at + 2);
  }
#if defined(__x86_64__)
  return "x86-64 processor";
#elif defined(__aarch64__)
  return "64-bit Arm processor";
#else
  return "processor";
#endif
}

int processor_threads() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    return std::max(1, CPU_COUNT(&allowed));
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace reprise::sim
