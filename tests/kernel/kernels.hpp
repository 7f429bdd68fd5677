// Tiny kernels with a body on each device, for the tests of launching. Read by bodies.cu too.
#pragma once

#include <cstdint>

#include "reprise/kernel/kernel.hpp"

namespace reprise::test::REPRISE_BODIES {

// A struct as an argument, with a hole between its members.
struct affine {
  float scale = 1;
  double shift = 0;
  std::int16_t times = 1;
};

// out[i] = in[i], put `times` times through scale * x + shift.
inline constexpr kernel<void(read<float>, write<float>, affine)> transform{"test_transform"};
void transform_cpu(cpu_call&, read<float>, write<float>, affine);
void transform_cuda(cuda_call&, read<float>, write<float>, affine);

// One name over element types: out[i] += by.
template <class T>
inline constexpr kernel<void(inout<T>, T)> raise_by{"test_raise"};
void raise_cpu_f32(cpu_call&, inout<float>, float);
void raise_cuda_f32(cuda_call&, inout<float>, float);
void raise_cpu_i32(cpu_call&, inout<std::int32_t>, std::int32_t);
void raise_cuda_i32(cuda_call&, inout<std::int32_t>, std::int32_t);

// Many arguments of many kinds and sizes; out gets one element for each of them.
inline constexpr kernel<void(bool, read<std::int32_t>, std::uint8_t, inout<double>, std::int64_t,
                             float, read<std::uint8_t>, affine, write<double>, double)>
    collect{"test_collect"};
void collect_cpu(cpu_call&, bool, read<std::int32_t>, std::uint8_t, inout<double>, std::int64_t,
                 float, read<std::uint8_t>, affine, write<double>, double);
void collect_cuda(cuda_call&, bool, read<std::int32_t>, std::uint8_t, inout<double>, std::int64_t,
                  float, read<std::uint8_t>, affine, write<double>, double);

// Writes `value` to its workspace and from there to out; asks for as much as out has, and for
// nothing where out is empty.
inline constexpr kernel<void(write<std::int32_t>, std::int32_t)> by_way_of_workspace{
    "test_workspace"};
void workspace_cpu(cpu_call&, write<std::int32_t>, std::int32_t);
void workspace_cuda(cuda_call&, write<std::int32_t>, std::int32_t);

// Asks for room for all of `out` but one, and writes `value` as often as `out` has room to its
// workspace all the same.
inline constexpr kernel<void(write<std::int32_t>, std::int32_t)> past_its_workspace{
    "test_past_its_workspace"};
void past_workspace_cpu(cpu_call&, write<std::int32_t>, std::int32_t);

// A kernel that nobody has a body for.
inline constexpr kernel<void(read<float>, write<bf16>)> bodiless{"test_bodiless"};

void add_test_kernels(kernel_registry& registry);

}  // namespace reprise::test::REPRISE_BODIES

#if !defined(REPRISE_CHECKED)
namespace reprise::test {

namespace checked {
void add_test_kernels(kernel_registry& registry);
}

// All of them, with their checked bodies.
kernel_registry test_kernels();

}  // namespace reprise::test
#endif
