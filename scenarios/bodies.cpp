// The CPU bodies of the scenarios' kernels.
#include <cstddef>
#include <cstdint>

#include "reprise/device/cpu_call.hpp"
#include "scenarios/kernels.hpp"

namespace reprise::scenarios {

void append_digit_cpu(cpu_call&, inout<std::int32_t> x, std::int32_t digit) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 10 * x[i] + digit;
}

void add_cpu(cpu_call&, read<std::int32_t> from, inout<std::int32_t> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[from.size() == 1 ? 0 : i];
}

void times_cpu(cpu_call&, read<std::int32_t> x, read<std::int32_t> factor, write<std::int32_t> y) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] * factor[0];
}

void sum_up_cpu(cpu_call& call, read<std::int32_t> x, write<std::int32_t> sum) {
  auto* const copied = reinterpret_cast<std::int32_t*>(call.workspace().data());
  for (std::size_t i = 0; i < x.size(); ++i) copied[i] = x[i];
  std::int32_t total = 0;
  for (std::size_t i = 0; i < x.size(); ++i) total += copied[i];
  sum[0] = total;
}

void append_past_cpu(cpu_call&, inout<std::int32_t> x, std::int32_t digit) {
  for (std::size_t i = 0; i <= x.size(); ++i) x[i] = 10 * x[i] + digit;
}

}  // namespace reprise::scenarios
