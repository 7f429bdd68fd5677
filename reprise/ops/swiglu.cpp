#include "reprise/ops/swiglu.hpp"

#include <cstdint>
#include <cstring>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/math.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

namespace {

constexpr std::int64_t swiglu_lanes = 16;

template <class V>
[[gnu::always_inline]] inline V gated(const V& gate, const V& up) {
  const V one = math::fill<V>(1.0f);
  return (gate / (one + math::exp<V>(math::fill<V>(0.0f) - gate))) * up;
}

template <class A>
void sixteen(pointer_to<const A> gate, pointer_to<const A> up, pointer_to<A> out) {
  float g[swiglu_lanes];
  float u[swiglu_lanes];
  for (std::int64_t i = 0; i < swiglu_lanes; ++i) g[i] = widen(gate[i]);
  for (std::int64_t i = 0; i < swiglu_lanes; ++i) u[i] = widen(up[i]);
  math::f32x16 a;
  math::f32x16 b;
  std::memcpy(&a, g, sizeof a);
  std::memcpy(&b, u, sizeof b);
  const math::f32x16 product = gated<math::f32x16>(a, b);
  std::memcpy(g, &product, sizeof g);
  for (std::int64_t i = 0; i < swiglu_lanes; ++i) out[i] = narrow<A>(g[i]);
}

}  // namespace

void check_swiglu(std::size_t gate, std::size_t up, std::size_t out) {
  need_elements("swiglu", "up", up, gate);
  need_elements("swiglu", "out", out, gate);
}

template <class A>
void swiglu_cpu(cpu_call& call, read<A> gate, read<A> up, write<A> out) {
  check_swiglu(gate.size(), up.size(), out.size());
  call.parallel_for(
      static_cast<std::int64_t>(gate.size()), 8192, [&](std::int64_t first, std::int64_t last) {
        std::int64_t i = first;
        for (; i + swiglu_lanes <= last; i += swiglu_lanes) {
          sixteen(gate.data() + i, up.data() + i, out.data() + i);
        }
        for (; i < last; ++i) {
          out.data()[i] = narrow<A>(gated<float>(widen(gate.data()[i]), widen(up.data()[i])));
        }
      });
}

}  // namespace ops

namespace {

template <class A>
void add_swiglu_of(kernel_registry& registry) {
  registry.add(swiglu<A>, {{device_kind::cpu, "generic", ops::swiglu_cpu<A>},
                           {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::swiglu_cuda<A>)}});
}

}  // namespace

void add_swiglu(kernel_registry& registry) {
  add_swiglu_of<float>(registry);
  add_swiglu_of<bf16>(registry);
}

}  // namespace reprise::REPRISE_BODIES
