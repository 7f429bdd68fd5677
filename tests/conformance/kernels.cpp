#include "tests/conformance/kernels.hpp"

#include <algorithm>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/platform/platform.hpp"

namespace reprise::test {

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
  auto* const scratch = reinterpret_cast<std::int32_t*>(call.workspace().data());
  std::fill_n(scratch, out.size(), value);
  std::copy_n(scratch, out.size(), out.data());
}

kernel_registry conformance_kernels() {
  kernel_registry kernels = builtin_kernels();
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
  return kernels;
}

}  // namespace reprise::test
