#include "reprise/grad/precision.hpp"

#include <fmt/format.h>

#include <utility>

#include "reprise/replay/signature.hpp"

namespace reprise {

namespace {

thread_local precision in_force;

}  // namespace

std::string text_of(const precision& p) {
  return fmt::format("{} products, {} casts", name_of(p.products),
                     p.casts == cast_mode::bf16 ? "bf16" : "no");
}

precision precision_now() noexcept {
  return in_force;
}

precision_scope::precision_scope(const precision& p) noexcept
    : before_{std::exchange(in_force, p)} {}

precision_scope::~precision_scope() {
  in_force = before_;
}

void key_by_precision(signature& sig) {
  sig.key("matrix products", [] { return static_cast<std::uint64_t>(precision_now().products); });
  sig.key("casts", [] { return static_cast<std::uint64_t>(precision_now().casts); });
}

}  // namespace reprise
