// The parity oracle: one launch on a reference device and on another, and how far what it wrote
// differs there. The other's cell says how far it may.
//
// A case is made from arguments whose views name host memory; their bytes are kept. Each run gets
// them in fresh device memory with guards around it. Slow; one thread at a time for each device.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "reprise/device/device.hpp"
#include "reprise/kernel/images.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/kernel/parity.hpp"

namespace reprise {

// One view of a case: what it holds before the launch, and whether that is compared after it.
struct case_view {
  std::size_t argument = 0;   // its place among all arguments of the kernel
  const void* key = nullptr;  // where it lay: says which views overlap
  dtype type = dtype::f32;
  bool written = false;
  std::vector<std::byte> bytes;
};

struct op_case {
  kernel_id kernel{};
  std::string text;  // "swiglu(r:f32 r:f32 w:f32)"
  std::string name;  // "1000 elements"
  nan_rule nans = nan_rule::differ;
  std::vector<case_view> views;
  std::function<void(const site&, const image_map&)> launch;
};

namespace detail {

template <class A>
void add_case_view(op_case& made, std::size_t argument, const A& given) {
  if constexpr (is_access<A>) {
    const access touched = access_of(given);
    using stored = std::remove_cvref_t<decltype(given[0])>;
    case_view& one = made.views.emplace_back();
    one.argument = argument;
    one.key = touched.begin;
    one.type = dtype_of<stored>;
    one.written = touched.writes;
    const auto* const begin = static_cast<const std::byte*>(touched.begin);
    one.bytes.assign(begin, begin + touched.bytes);
  }
}

}  // namespace detail

// The views name host memory, which may go when this returns. What is only written is given to the
// kernel as it is, so let it hold something that no result holds.
template <class... A>
op_case case_of(const kernel<void(A...)>& k, std::string name, std::type_identity_t<A>... given) {
  op_case made;
  made.kernel = k.id();
  made.text = k.text();
  made.name = std::move(name);
  std::size_t argument = 0;
  (detail::add_case_view(made, argument++, given), ...);
  made.launch = [k, arguments = detail::make_pack(given...)](const site& at, const image_map& to) {
    detail::apply(arguments, [&](const A&... a) { reprise::launch(at, k, moved(a, to)...); });
  };
  return made;
}

// What one launch of a case left in the views that it may write, in their order.
struct case_outputs {
  std::vector<std::vector<std::byte>> bytes;
  std::string failed;  // what the launch threw, or that it wrote beside a view; else empty
};
case_outputs run_case(const op_case& what, device_ref on);

struct parity_result {
  std::string kernel;
  std::string case_name;
  std::string arch;  // of the cell that was held to the reference
  std::string variant;
  std::size_t argument = 0;  // which of the kernel's arguments is the output
  parity_bound bound;
  parity_gap seen;
};

// One result for each output. The bound is that of the cell which `on` resolved; a launch that
// failed on either side is infinitely far away. Throws usage_error when `on` has no body for it.
std::vector<parity_result> compare_case(const op_case& what, const case_outputs& reference,
                                        device_ref on);

}  // namespace reprise
