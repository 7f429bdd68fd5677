// A process that writes a run directory, killed in the middle of it: what a crash leaves.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "reprise/telemetry/log.hpp"
#include "tests/records/run_support.hpp"

namespace reprise::test {

// What the child does: goes on with the run from its first missing record, and says how many it has
// written. Never returns.
[[noreturn]] inline void write_on(const std::filesystem::path& folder, std::uint64_t all, int say) {
  set_log_sink([](std::string_view) {});
  try {
    const auto sink = arrow_sink(folder, {.segment_bytes = 4U << 20});
    sink->open("run1");
    std::uint64_t done = recorded_run{folder}.records();
    while (done < all) {
      const std::uint64_t batch = std::min<std::uint64_t>(1 + done % 700, all - done);
      write_batches(*sink, done, batch, batch);
      done += batch;
      if (::write(say, &done, sizeof done) != sizeof done) ::_exit(3);
    }
    sink->close();
    ::_exit(0);
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "%s\n", failed.what());
    ::_exit(2);
  }
}

// Lets a child write until it has said `enough`, and kills it there. Returns what it said last: all
// of that is in the run. Zero `enough`: it is not killed.
inline std::uint64_t write_until(const std::filesystem::path& folder, std::uint64_t all,
                                 std::uint64_t enough) {
  int ends[2];
  if (::pipe(ends) != 0) std::abort();
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    write_on(folder, all, ends[1]);
  }
  ::close(ends[1]);
  std::uint64_t said = 0;
  for (std::uint64_t done = 0; ::read(ends[0], &done, sizeof done) == sizeof done;) {
    said = done;
    if (enough != 0 && said >= enough) {
      enough = 0;
      ::kill(child, SIGKILL);
    }
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : 0, 0);
  return said;
}

}  // namespace reprise::test
