// The arguments of a launch as one trivially copyable block, so that a capture can keep them.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

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

template <class Call, class... A>
void invoke(void* call, const std::byte* bytes) {
  const auto& packed = *std::launder(reinterpret_cast<const packed_call<A...>*>(bytes));
  const auto body = reinterpret_cast<void (*)(Call&, A...)>(packed.body);
  apply(packed.arguments, [&](const A&... a) { body(*static_cast<Call*>(call), a...); });
}

template <class... A>
std::size_t ask_workspace(void (*ask)(), const std::byte* bytes) {
  const auto& packed = *std::launder(reinterpret_cast<const packed_call<A...>*>(bytes));
  const auto typed = reinterpret_cast<std::size_t (*)(A...)>(ask);
  return apply(packed.arguments, [&](const A&... a) { return typed(a...); });
}

}  // namespace reprise::detail
