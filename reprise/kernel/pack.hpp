// The arguments of a launch as one trivially copyable block, so that a capture can keep them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>

#include "reprise/base/portable.hpp"

namespace reprise::detail {

// std::tuple is not trivially copyable in libstdc++; this is.
template <class... A>
struct pack {};

template <class Head, class... Tail>
struct pack<Head, Tail...> {
  Head head;
  pack<Tail...> tail;
};

inline pack<> make_pack() {
  return {};
}

template <class Head, class... Tail>
pack<Head, Tail...> make_pack(const Head& head, const Tail&... tail) {
  return {head, make_pack(tail...)};
}

template <class F, class... Before>
decltype(auto) apply(const pack<>&, F&& f, const Before&... before) {
  return f(before...);
}

// f(first, second, …)
template <class F, class Head, class... Tail, class... Before>
decltype(auto) apply(const pack<Head, Tail...>& p, F&& f, const Before&... before) {
  return apply(p.tail, static_cast<F&&>(f), before..., p.head);
}

// What travels through the seam: the body, then its arguments.
template <class... A>
struct alignas(16) packed_call {
  void (*body)();
  pack<A...> arguments;
};

}  // namespace reprise::detail

namespace reprise::REPRISE_BODIES {

#if defined(REPRISE_CHECKED)
// A plain launch has packed views, and perhaps structs, of the plain namespace: other types with
// the same bytes. So no reference to them, but a copy made of their bytes.
template <class... A>
detail::packed_call<A...> packed_at(const std::byte* bytes) {
  std::array<std::byte, sizeof(detail::packed_call<A...>)> copy;
  std::memcpy(copy.data(), bytes, copy.size());
  return std::bit_cast<detail::packed_call<A...>>(copy);
}

// The device has made a plain call, which begins with its loan.
template <class Call>
Call call_at(void* call) {
  return Call{*static_cast<const typename Call::loan*>(call)};
}
#else
template <class... A>
const detail::packed_call<A...>& packed_at(const std::byte* bytes) {
  return *std::launder(reinterpret_cast<const detail::packed_call<A...>*>(bytes));
}

template <class Call>
Call& call_at(void* call) {
  return *static_cast<Call*>(call);
}
#endif

// What a cell keeps to run its body, and to ask for its workspace: of the compile that the body is
// of, like the types of both.
template <class Call, class... A>
void invoke_packed(void* call, const std::byte* bytes) {
  auto&& packed = packed_at<A...>(bytes);
  auto&& given = call_at<Call>(call);
  const auto body = reinterpret_cast<void (*)(Call&, A...)>(packed.body);
  detail::apply(packed.arguments, [&](const A&... a) { body(given, a...); });
}

template <class... A>
std::size_t ask_packed(void (*ask)(), const std::byte* bytes) {
  auto&& packed = packed_at<A...>(bytes);
  const auto typed = reinterpret_cast<std::size_t (*)(A...)>(ask);
  return detail::apply(packed.arguments, [&](const A&... a) { return typed(a...); });
}

}  // namespace reprise::REPRISE_BODIES
