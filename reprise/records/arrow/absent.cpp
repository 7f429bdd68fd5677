// A build without Arrow C++: run directories are neither written nor read, and say so in one line.
#include "reprise/base/error.hpp"
#include "reprise/records/arrow/arrow_sink.hpp"
#include "reprise/records/arrow/recorded_run.hpp"

namespace reprise {

namespace {

[[noreturn]] void refuse_without_arrow() {
  throw usage_error{
      "run directories: this build has no Arrow C++; install the pyarrow wheel (pip install "
      "pyarrow) or Arrow's development package, and configure and build again"};
}

}  // namespace

bool has_arrow() noexcept {
  return false;
}

std::unique_ptr<record_sink> arrow_sink(std::filesystem::path, arrow_sink_options) {
  refuse_without_arrow();
}

recorded_run::recorded_run(const std::filesystem::path&) {
  refuse_without_arrow();
}

std::uint64_t recorded_run::batches() const noexcept {
  return 0;
}

std::uint64_t recorded_run::records() const noexcept {
  return 0;
}

void recorded_run::read(const record_filter&, const std::function<void(const tap_record&)>&) const {
  refuse_without_arrow();
}

}  // namespace reprise
