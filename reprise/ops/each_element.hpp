// How CPU bodies go over elements, spread over the threads of a call: one after the other, or
// sixteen at a time where the arithmetic has an exponential, which a compiler makes no vectors of.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/device/cpu_call.hpp"
#include "reprise/ops/math.hpp"

namespace reprise::REPRISE_BODIES::ops {

// body(i) for each i below `count`, in any order.
template <class Body>
void each_element(const cpu_call& call, std::size_t count, const Body& body) {
  call.parallel_for(static_cast<std::int64_t>(count), 32768,
                    [&](std::int64_t first, std::int64_t last) {
                      for (std::int64_t i = first; i < last; ++i) body(i);
                    });
}

[[gnu::always_inline]] inline math::f32x16 sixteen_at(pointer_to<const float> from) {
  math::f32x16 values;
  read_elements<const float>(from, 16, &values);
  return values;
}

// out[i] = f(in[i]...) for each element of out, which may be one of the inputs itself. f takes
// floats or vectors of sixteen, and a lane has the bits that the scalar has.
template <class F, class... In>
void map_elements(const cpu_call& call, const F& f, write<float> out, const In&... in) {
  call.parallel_for(static_cast<std::int64_t>(out.size()), 8192,
                    [&](std::int64_t first, std::int64_t last) {
                      std::int64_t i = first;
                      for (; i + 16 <= last; i += 16) {
                        const math::f32x16 values = f(sixteen_at(in.data() + i)...);
                        write_elements<float>(&values, 16, out.data() + i);
                      }
                      for (; i < last; ++i) {
                        const float value = f(static_cast<float>(in.data()[i])...);
                        out.data()[i] = value;
                      }
                    });
}

}  // namespace reprise::REPRISE_BODIES::ops
