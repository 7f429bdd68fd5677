#include "tests/conformance/kernels.hpp"

#include <algorithm>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"

namespace reprise::test::REPRISE_BODIES {

namespace {

std::size_t as_much_as_out(write<std::int32_t> out, std::int32_t) {
  return out.bytes();
}

}  // namespace

void append_digit_cpu(cpu_call&, inout<std::int32_t> x, std::int32_t digit) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 10 * x[i] + digit;
}

void hold_cpu(cpu_call&, read<std::int32_t>) {}

void through_workspace_cpu(cpu_call& call, write<std::int32_t> out, std::int32_t value) {
  const view<std::int32_t> scratch = call.workspace<std::int32_t>();
  std::fill_n(scratch.data(), out.size(), value);
  std::copy_n(scratch.data(), out.size(), out.data());
}

void add_conformance_kernels(kernel_registry& kernels) {
  kernels.add(append_digit, {{device_kind::cpu, "generic", append_digit_cpu},
                             {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(append_digit_cuda)}});
  kernels.add(hold, {{device_kind::cpu, "generic", hold_cpu},
                     {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(hold_cuda)}});
  kernels.add(through_workspace,
              {{device_kind::cpu, "generic", through_workspace_cpu, "default", as_much_as_out},
               {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(through_workspace_cuda), "default",
                as_much_as_out}});
  kernels.add(stray, {{device_kind::cpu, "generic", not_built{}},
                      {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(stray_cuda)}});
}

}  // namespace reprise::test::REPRISE_BODIES
