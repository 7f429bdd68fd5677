#include "reprise/kernel/oracle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>

#include "reprise/device/memory.hpp"

namespace reprise {

namespace {

// Around each image, of a pattern that a body would have to write to go unseen.
constexpr std::size_t guard_bytes = 256;
constexpr std::byte guard{0xa5};

// Lends scratch as the run of a step does.
class lender {
 public:
  lender(stream_ref on, pool& from) : on_{on}, from_{from} {}
  operator stream_ref() const { return on_; }
  workspace_ref workspace() const { return {&take, const_cast<lender*>(this)}; }

 private:
  static std::span<std::byte> take(void* owner, std::size_t bytes) {
    auto& self = *static_cast<lender*>(owner);
    self.lent_ = block{self.from_, bytes, self.on_};
    return {self.lent_.data(), bytes};
  }

  stream_ref on_;
  pool& from_;
  block lent_;
};

bool is_guard(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == guard; });
}

// An image on the device with guards around it, and what is there on the host.
struct placed {
  block memory;
  std::vector<std::byte> host;
};

placed place(view_image& one, const op_case& what, stream_ref on, pool& memory) {
  placed made{block{memory, one.bytes + 2 * guard_bytes, on},
              std::vector<std::byte>(one.bytes + 2 * guard_bytes, guard)};
  for (const case_view& v : what.views) {
    const auto* const key = static_cast<const std::byte*>(v.key);
    if (v.bytes.empty() || key < one.begin || key >= one.begin + one.bytes) continue;
    std::ranges::copy(
        v.bytes, made.host.begin() + static_cast<std::ptrdiff_t>(guard_bytes) + (key - one.begin));
  }
  one.copy = made.memory.data() + guard_bytes;
  copy_bytes(on, made.host.data(), made.memory.data(), made.host.size());
  return made;
}

void run(const op_case& what, device_ref on, case_outputs& seen) {
  const stream work{on};
  pool memory{on, "parity"};
  image_map images;
  for (const case_view& v : what.views) images.add(v.key, v.bytes.size());
  std::vector<placed> held;
  for (view_image& one : images.images()) held.push_back(place(one, what, work, memory));

  what.launch(lender{work, memory}, images);
  for (placed& p : held) {
    copy_bytes(work, p.memory.data(), p.host.data(), p.host.size());
  }
  work.synchronize();
  for (std::size_t i = 0; i < held.size(); ++i) {
    view_image& one = images.images()[i];
    one.copy = held[i].host.data() + guard_bytes;
    const std::span<const std::byte> all{held[i].host};
    if (!is_guard(all.first(guard_bytes)) || !is_guard(all.last(guard_bytes))) {
      seen.failed = fmt::format("it wrote beside its {} bytes", one.bytes);
    }
  }
  for (const case_view& v : what.views) {
    if (!v.written) continue;
    const std::byte* const at = images.copy_of(v.key);
    seen.bytes.emplace_back(at, at + v.bytes.size());
  }
}

}  // namespace

case_outputs run_case(const op_case& what, device_ref on) {
  case_outputs seen;
  try {
    run(what, on, seen);
  } catch (const std::exception& thrown) {
    seen.failed = thrown.what();
  }
  return seen;
}

std::vector<parity_result> compare_case(const op_case& what, const case_outputs& reference,
                                        device_ref on) {
  const cell_row& cell = on.kernels()->resolve(what.kernel, what.text);
  const case_outputs got = run_case(what, on);
  std::string failed = got.failed.empty() ? "" : fmt::format("on {}: {}", on.name(), got.failed);
  if (!reference.failed.empty()) failed = "on the reference: " + reference.failed;

  std::vector<parity_result> results;
  for (const case_view& v : what.views) {
    if (!v.written) continue;
    const std::size_t i = results.size();
    parity_result& made = results.emplace_back();
    made.kernel = what.text;
    made.case_name = what.name;
    made.arch = cell.arch;
    made.variant = cell.variant;
    made.argument = v.argument;
    made.bound = cell.bound;
    if (!failed.empty()) {
      constexpr double infinite = std::numeric_limits<double>::infinity();
      made.seen = {0, infinite, infinite, false, failed};
      continue;
    }
    const auto as_tensor = [&](const std::vector<std::byte>& bytes) {
      const dims shape{static_cast<std::int64_t>(bytes.size() / size_of(v.type))};
      return tensor_ref{const_cast<std::byte*>(bytes.data()), v.type, shape,
                        contiguous_strides(shape)};
    };
    made.seen =
        compare(as_tensor(reference.bytes[i]), as_tensor(got.bytes[i]), cell.bound, what.nans);
  }
  return results;
}

}  // namespace reprise
