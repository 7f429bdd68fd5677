#include "bench/measure/resident.hpp"

#include <malloc.h>
#include <unistd.h>

#include <fstream>

#include "reprise/base/error.hpp"

namespace reprise::bench {

std::size_t resident_bytes() {
  std::ifstream figures{"/proc/self/statm"};
  std::size_t pages = 0;
  std::size_t resident_pages = 0;
  if (!(figures >> pages >> resident_pages)) {
    throw error{"the bench cannot read /proc/self/statm; run it where /proc is mounted"};
  }
  return resident_pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

void trim_heap() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace reprise::bench
