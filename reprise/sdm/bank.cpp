#include "reprise/sdm/bank.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace sdm {

namespace {

constexpr std::int64_t block = 256;      // elements that are summed side by side
constexpr std::int64_t grain = 1 << 15;  // elements worth a thread

// Elements of one of the copies that make up `elements`.
std::int64_t one_of(const char* op, const char* argument, std::size_t elements,
                    std::int64_t streams) {
  if (streams < 1) {
    throw usage_error{fmt::format("{}: there are {} streams; give at least 1", op, streams)};
  }
  if (elements % static_cast<std::size_t>(streams) != 0) {
    throw usage_error{
        fmt::format("{}: {} has {} elements, which are no {} banks of one size; give whole banks",
                    op, argument, elements, streams)};
  }
  return static_cast<std::int64_t>(elements) / streams;
}

}  // namespace

std::int64_t expanded_elements(std::size_t initial, std::size_t bank, std::int64_t streams) {
  const std::int64_t each = one_of("sdm_expand", "the bank", bank, streams);
  if (initial != 0) {
    ops::need_elements("sdm_expand", "the initial bank", initial, static_cast<std::size_t>(each));
  }
  return each;
}

std::int64_t bank_grad_elements(std::size_t cotangent, std::size_t grad, std::size_t rule,
                                std::int64_t streams) {
  const std::int64_t each = one_of("sdm_bank_grad", "the cotangent", cotangent, streams);
  ops::need_elements("sdm_bank_grad", "the gradient", grad, static_cast<std::size_t>(each));
  ops::need_elements("sdm_bank_grad", "the rule", rule, 1);
  return each;
}

void need_cast(std::size_t from, std::size_t to) {
  if (from != 0) ops::need_elements("sdm_cast", "from", from, to);
}

template <class B, class X>
void expand_cpu(cpu_call& call, read<X> initial, write<B> bank, std::int64_t streams) {
  const std::int64_t each = expanded_elements(initial.size(), bank.size(), streams);
  const bool zeros = initial.size() == 0;
  const auto from = initial.data();
  const auto to = bank.data();
  call.parallel_for(each, std::max<std::int64_t>(1, grain / streams),
                    [&](std::int64_t first, std::int64_t last) {
                      for (std::int64_t p = 0; p < streams; ++p) {
                        const auto own = to + p * each;
                        for (std::int64_t i = first; i < last; ++i) {
                          own[i] = stored<B>(zeros ? X{} : static_cast<X>(from[i]));
                        }
                      }
                    });
}

template <class G, class X>
void bank_grad_cpu(cpu_call& call, read<G> cotangent, inout<X> grad, read<std::int32_t> rule,
                   std::int64_t streams) {
  const std::int64_t each = bank_grad_elements(cotangent.size(), grad.size(), rule.size(), streams);
  const gradient_rule by = gradient_rule_of(rule[0]);
  if (by == gradient_rule::leave && !REPRISE_MUTANT(sdm_bank_grad_is_never_left)) return;
  const auto from = cotangent.data();
  const auto to = grad.data();
  call.parallel_for((each + block - 1) / block, std::max<std::int64_t>(1, grain / block / streams),
                    [&](std::int64_t first, std::int64_t last) {
                      for (std::int64_t at = first; at < last; ++at) {
                        const std::int64_t begin = at * block;
                        const std::int64_t count = std::min(block, each - begin);
                        X sums[block] = {};
                        for (std::int64_t p = 0; p < streams; ++p) {
                          const auto one = from + (p * each + begin);
                          for (std::int64_t i = 0; i < count; ++i) sums[i] += widened<X, G>(one[i]);
                        }
                        const auto own = to + begin;
                        for (std::int64_t i = 0; i < count; ++i) {
                          const X old = by == gradient_rule::add ? static_cast<X>(own[i]) : X{};
                          own[i] = by == gradient_rule::add ? old + sums[i] : sums[i];
                        }
                      }
                    });
}

template <class To, class From>
void cast_cpu(cpu_call& call, read<From> from, write<To> to) {
  need_cast(from.size(), to.size());
  const bool zeros = from.size() == 0;
  const auto source = from.data();
  const auto out = to.data();
  call.parallel_for(static_cast<std::int64_t>(to.size()), grain,
                    [&](std::int64_t first, std::int64_t last) {
                      for (std::int64_t i = first; i < last; ++i) {
                        out[i] = zeros ? To{} : cast_to<To>(static_cast<From>(source[i]));
                      }
                    });
}

}  // namespace sdm

namespace {

template <class T>
void add_banks_of(kernel_registry& registry) {
  registry.add(sdm_expand<T>,
               {{device_kind::cpu, "generic", sdm::expand_cpu<T>},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(sdm::expand_cuda<T>)}});
  registry.add(sdm_bank_grad<T>,
               {{device_kind::cpu, "generic", sdm::bank_grad_cpu<T>},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(sdm::bank_grad_cuda<T>)}});
}

template <class To, class From>
void add_cast(kernel_registry& registry) {
  registry.add(sdm_cast<To, From>,
               {{device_kind::cpu, "generic", sdm::cast_cpu<To, From>},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY((sdm::cast_cuda<To, From>))}});
}

}  // namespace

void add_sdm_bank(kernel_registry& registry) {
  add_banks_of<float>(registry);
  add_banks_of<bf16>(registry);
  registry.add(sdm_expand<double>, {{device_kind::cpu, "generic", sdm::expand_cpu<double>}});
  registry.add(sdm_bank_grad<double>, {{device_kind::cpu, "generic", sdm::bank_grad_cpu<double>}});
  add_cast<float, float>(registry);
  add_cast<bf16, bf16>(registry);
  add_cast<bf16, float>(registry);
  add_cast<float, bf16>(registry);
  registry.add(sdm_cast<double, double>,
               {{device_kind::cpu, "generic", sdm::cast_cpu<double, double>}});
}

}  // namespace reprise::REPRISE_BODIES
