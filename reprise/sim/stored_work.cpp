#include "reprise/sim/stored_work.hpp"

#include <fmt/format.h>

#include <cstring>
#include <exception>

#include "reprise/base/error.hpp"

namespace reprise::sim {

stored_work::stored_work(const work& from)
    : shape_{from}, label_{from.label}, accesses_{from.accesses.begin(), from.accesses.end()} {
  if (from.kernel.argument_bytes != 0) {
    arguments_.resize((from.kernel.argument_bytes + sizeof(chunk) - 1) / sizeof(chunk));
    std::memcpy(arguments_.data(), from.kernel.arguments, from.kernel.argument_bytes);
  }
  if (from.on_host != nullptr) on_host_ = *from.on_host;
  if (from.on_stream != nullptr) on_stream_ = *from.on_stream;
}

work stored_work::borrow() const {
  work what = shape_;
  what.label = label_;
  what.accesses = accesses_;
  what.kernel.arguments = reinterpret_cast<const std::byte*>(arguments_.data());
  if (what.on_host != nullptr) what.on_host = &on_host_;
  if (what.on_stream != nullptr) what.on_stream = &on_stream_;
  return what;
}

namespace {

// As on a GPU, where nobody could catch what the function throws.
void call_host(const work& what) {
  try {
    (*what.on_host)();
  } catch (const std::exception& thrown) {
    report_error(fmt::format("host call '{}' threw on the stream: {}", what.label, thrown.what()));
  } catch (...) {
    report_error(fmt::format("host call '{}' threw on the stream", what.label));
  }
}

void fill_now(const fill_call& fill) {
  switch (fill.pattern_bytes) {
    case 1: std::memset(fill.to, static_cast<int>(fill.pattern & 0xff), fill.bytes); return;
    case 2:
    case 4:
      for (std::size_t at = 0; at < fill.bytes; at += fill.pattern_bytes) {
        std::memcpy(fill.to + at, &fill.pattern, fill.pattern_bytes);  // little endian
      }
      return;
    default: return;
  }
}

}  // namespace

void run_now(const work& what, worker_ref workers) {
  switch (what.kind) {
    case work_kind::kernel: {
      cpu_call call{what.kernel.workspace, workers};
      what.kernel.invoke(&call, what.kernel.arguments);
      return;
    }
    case work_kind::copy: std::memmove(what.copy.to, what.copy.from, what.copy.bytes); return;
    case work_kind::fill: fill_now(what.fill); return;
    case work_kind::host_call: call_host(what); return;
    case work_kind::empty: return;
    case work_kind::external: (*what.on_stream)(nullptr); return;
    case work_kind::event_record:
    case work_kind::event_wait: return;
  }
}

}  // namespace reprise::sim
