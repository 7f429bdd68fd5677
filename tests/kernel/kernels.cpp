#include "tests/kernel/kernels.hpp"

#include <algorithm>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"

namespace reprise::test::REPRISE_BODIES {

namespace {

std::size_t as_much_as_out(write<std::int32_t> out, std::int32_t) {
  return out.bytes();
}

std::size_t one_less_than_out(write<std::int32_t> out, std::int32_t) {
  return out.bytes() - sizeof(std::int32_t);
}

}  // namespace

void transform_cpu(cpu_call& call, read<float> in, write<float> out, affine by) {
  call.parallel_for(static_cast<std::int64_t>(in.size()), 1,
                    [&](std::int64_t first, std::int64_t last) {
                      for (std::int64_t i = first; i < last; ++i) {
                        double x = in.data()[i];
                        for (int n = 0; n < by.times; ++n)
                          x = static_cast<double>(by.scale) * x + by.shift;
                        out.data()[i] = static_cast<float>(x);
                      }
                    });
}

void raise_cpu_f32(cpu_call&, inout<float> x, float by) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += by;
}

void raise_cpu_i32(cpu_call&, inout<std::int32_t> x, std::int32_t by) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += by;
}

void collect_cpu(cpu_call&, bool yes, read<std::int32_t> ints, std::uint8_t byte, inout<double> sum,
                 std::int64_t wide, float single, read<std::uint8_t> bytes, affine by,
                 write<double> out, double last) {
  const double all[] = {yes ? 1.0 : 0.0,
                        static_cast<double>(ints[0]),
                        static_cast<double>(byte),
                        sum[0],
                        static_cast<double>(wide),
                        static_cast<double>(single),
                        static_cast<double>(bytes[0]),
                        static_cast<double>(by.scale) + by.shift + by.times,
                        static_cast<double>(out.size()),
                        last};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = all[i];
  sum[0] += 1;
}

void workspace_cpu(cpu_call& call, write<std::int32_t> out, std::int32_t value) {
  const view<std::int32_t> scratch = call.workspace<std::int32_t>();
  std::fill_n(scratch.data(), scratch.size(), value);
  std::copy_n(scratch.data(), scratch.size(), out.data());
}

void past_workspace_cpu(cpu_call& call, write<std::int32_t> out, std::int32_t value) {
  const auto scratch = call.workspace<std::int32_t>().data();
  for (std::size_t i = 0; i < out.size(); ++i) scratch[i] = value;
  std::copy_n(scratch, out.size(), out.data());
}

void add_test_kernels(kernel_registry& kernels) {
  kernels.add(transform, {{device_kind::cpu, "generic", transform_cpu},
                          {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(transform_cuda)}});
  kernels.add(raise_by<float>, {{device_kind::cpu, "generic", raise_cpu_f32},
                                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(raise_cuda_f32)}});
  kernels.add(raise_by<std::int32_t>,
              {{device_kind::cpu, "generic", raise_cpu_i32},
               {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(raise_cuda_i32)}});
  kernels.add(collect, {{device_kind::cpu, "generic", collect_cpu},
                        {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(collect_cuda)}});
  kernels.add(
      by_way_of_workspace,
      {{device_kind::cpu, "generic", workspace_cpu, "default", as_much_as_out},
       {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(workspace_cuda), "default", as_much_as_out}});
  kernels.add(past_its_workspace, {{.device = device_kind::cpu,
                                    .arch = "generic",
                                    .body = past_workspace_cpu,
                                    .workspace_bytes = one_less_than_out}});
  kernels.add(bodiless, {{device_kind::cpu, "generic", not_built{}},
                         {device_kind::cuda, "sm_80", not_built{}}});
}

}  // namespace reprise::test::REPRISE_BODIES
