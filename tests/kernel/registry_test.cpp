// Kernels and the registry of their cells.
#include "reprise/kernel/registry.hpp"

#include <gtest/gtest.h>

#include <set>

#include "reprise/base/error.hpp"

namespace reprise {
namespace {

constexpr kernel<void(read<float>, write<float>, int)> scale{"scale"};
constexpr kernel<void(read<bf16>, write<float>, int)> scale_bf16{"scale"};
void body(cpu_call&, read<float>, write<float>, int) {}
void other_body(cpu_call&, read<float>, write<float>, int) {}
void bf16_body(cpu_call&, read<bf16>, write<float>, int) {}

TEST(kernel, is_told_apart_by_name_and_by_the_types_and_accesses_of_its_views) {
  const std::set<kernel_id> ids{scale.id(),
                                scale_bf16.id(),
                                kernel<void(read<float>, write<float>, int)>{"scale2"}.id(),
                                kernel<void(read<float>, write<float>, int)>{"scal"}.id(),
                                kernel<void(write<float>, read<float>, int)>{"scale"}.id(),
                                kernel<void(read<float>, inout<float>, int)>{"scale"}.id(),
                                kernel<void(read<float>, write<double>, int)>{"scale"}.id(),
                                kernel<void(read<float>, write<float>)>{"scale"}.id(),
                                kernel<void(read<float>, write<float>, int, int)>{"scale"}.id(),
                                kernel<void(read<float>, write<float>, double)>{"scale"}.id(),
                                kernel<void()>{"scale"}.id(),
                                kernel<void()>{""}.id()};
  EXPECT_EQ(ids.size(), 12U);
  EXPECT_EQ(scale.id(), (kernel<void(read<float>, write<float>, int)>{"scale"}.id()));
}

TEST(kernel, is_written_with_its_views) {
  EXPECT_EQ(scale.text(), "scale(r:f32 w:f32)");
  EXPECT_EQ((kernel<void(read<bf16>, int, inout<std::int64_t>, write<std::uint8_t>)>{"mix"}.text()),
            "mix(r:bf16 rw:i64 w:u8)");
  EXPECT_EQ((kernel<void()>{"nothing"}.text()), "nothing()");
  EXPECT_EQ((kernel<void(double)>{"scalar"}.text()), "scalar()");
}

TEST(kernel, takes_a_struct_of_any_size_for_a_scalar) {
  struct large {
    char bytes[3000];
  };
  EXPECT_EQ((kernel<void(large, read<float>)>{"large"}.text()), "large(r:f32)");
}

TEST(registry, lists_each_cell_as_it_was_added) {
  kernel_registry kernels;
  kernels.add(scale, {{device_kind::cpu, "generic", body},
                      {device_kind::cpu, "avx2", other_body, "fast"},
                      {device_kind::cuda, "sm_80", not_built{}}});
  ASSERT_EQ(kernels.rows().size(), 3U);
  const cell_row& first = kernels.rows()[0];
  EXPECT_EQ(first.id, scale.id());
  EXPECT_EQ(first.kernel, "scale(r:f32 w:f32)");
  EXPECT_EQ(first.device, device_kind::cpu);
  EXPECT_EQ(first.arch, "generic");
  EXPECT_EQ(first.variant, "default");
  EXPECT_TRUE(first.built);
  EXPECT_NE(first.invoke, nullptr);
  EXPECT_EQ(first.workspace, nullptr);
  EXPECT_EQ(kernels.rows()[1].variant, "fast");
  const cell_row& left_out = kernels.rows()[2];
  EXPECT_EQ(left_out.device, device_kind::cuda);
  EXPECT_FALSE(left_out.built);
  EXPECT_EQ(left_out.body, nullptr);
  EXPECT_EQ(left_out.invoke, nullptr);
}

TEST(registry, takes_one_arch_of_each_variant_and_device) {
  kernel_registry kernels;
  kernels.add(scale, {{device_kind::cpu, "generic", body}});
  kernels.add(scale, {{device_kind::cpu, "avx2", body}});
  kernels.add(scale, {{device_kind::cpu, "generic", other_body, "fast"}});
  kernels.add(scale, {{device_kind::cuda, "generic", not_built{}}});
  kernels.add(scale_bf16, {{device_kind::cpu, "generic", bf16_body}});
  EXPECT_EQ(kernels.rows().size(), 5U);
}

TEST(registry, refuses_a_cell_that_is_there_and_names_it) {
  kernel_registry kernels;
  kernels.add(scale, {{device_kind::cpu, "generic", body}});
  try {
    kernels.add(scale, {{device_kind::cpu, "generic", other_body}});
    FAIL() << "it was taken";
  } catch (const usage_error& refusal) {
    EXPECT_STREQ(refusal.what(),
                 "kernel scale(r:f32 w:f32): the cell (cpu, generic, default) is registered "
                 "already; register it once, say replace, or give it a variant name of its own");
  }
}

TEST(registry, replaces_a_cell_that_is_there_when_it_is_told_to) {
  kernel_registry kernels;
  kernels.add(scale, {{device_kind::cpu, "generic", body}});
  kernels.add(scale,
              {{.device = device_kind::cpu, .arch = "generic", .body = other_body, .replace = true},
               {.device = device_kind::cpu, .arch = "avx2", .body = body, .replace = true}});
  ASSERT_EQ(kernels.rows().size(), 2U);
  EXPECT_EQ(kernels.rows()[0].body, reinterpret_cast<void (*)()>(&other_body));
  EXPECT_THROW(kernels.add(scale, {{device_kind::cpu, "generic", body}}), usage_error);
}

TEST(registry, keeps_what_a_cell_says_of_itself_and_else_the_file_that_adds_it) {
  kernel_registry kernels;
  kernels.add(scale, {{device_kind::cpu, "generic", body},
                      {.device = device_kind::cuda,
                       .arch = "sm_80",
                       .body = not_built{},
                       .source = "by hand",
                       .bound = {.relative = 0.5}}});
  EXPECT_EQ(kernels.rows()[0].source, "registry_test.cpp");
  EXPECT_EQ(kernels.rows()[0].bound, parity_bound{});
  EXPECT_EQ(kernels.rows()[1].source, "by hand");
  EXPECT_EQ(kernels.rows()[1].bound.relative, 0.5);
}

TEST(registry, gives_a_part_of_itself) {
  kernel_registry kernels;
  kernels.add(scale, {{device_kind::cpu, "generic", body}, {device_kind::cpu, "avx2", body}});
  const kernel_registry part = kernels.only([](const cell_row& row) { return row.arch == "avx2"; });
  ASSERT_EQ(part.rows().size(), 1U);
  EXPECT_EQ(part.rows()[0].arch, "avx2");
  EXPECT_EQ(kernels.rows().size(), 2U);
}

TEST(registry, changes_nothing_when_it_refuses_one_cell_of_several) {
  kernel_registry kernels;
  kernels.add(scale, {{device_kind::cpu, "generic", body}});
  EXPECT_THROW(kernels.add(scale, {{device_kind::cpu, "avx2", body},
                                   {device_kind::cpu, "generic", other_body}}),
               usage_error);
  EXPECT_EQ(kernels.rows().size(), 1U);
  EXPECT_THROW(kernels.add(scale, {{device_kind::cpu, "avx2", body},
                                   {device_kind::cpu, "avx2", other_body}}),
               usage_error);
  EXPECT_EQ(kernels.rows().size(), 1U);
}

TEST(registry, is_a_value) {
  kernel_registry first;
  first.add(scale, {{device_kind::cpu, "generic", body}});
  kernel_registry second = first;
  second.add(scale, {{device_kind::cpu, "avx2", body}});
  EXPECT_EQ(first.rows().size(), 1U);
  EXPECT_EQ(second.rows().size(), 2U);
}

TEST(registry, shows_a_null_body_as_one_that_was_not_built) {
  kernel_registry kernels;
  void (*const none)(cpu_call&, read<float>, write<float>, int) = nullptr;
  kernels.add(scale, {{device_kind::cpu, "generic", none}});
  EXPECT_FALSE(kernels.rows()[0].built);
}

TEST(kernel, is_told_apart_by_the_types_of_its_scalars_too) {
  constexpr kernel<void(write<float>, float)> with_float{"same"};
  constexpr kernel<void(write<float>, std::int32_t)> with_int{"same"};
  constexpr kernel<void(write<float>, std::uint32_t)> with_unsigned{"same"};
  constexpr kernel<void(write<float>, std::int64_t)> with_long{"same"};
  constexpr kernel<void(inout<float>, float)> updating{"same"};
  constexpr kernel<void(write<bf16>, float)> narrow_one{"same"};
  constexpr kernel<void(write<float>, float)> again{"same"};
  const std::set<kernel_id> ids{with_float.id(), with_int.id(), with_unsigned.id(),
                                with_long.id(),  updating.id(), narrow_one.id()};
  EXPECT_EQ(ids.size(), 6U);
  EXPECT_EQ(with_float.id(), again.id());
}

}  // namespace
}  // namespace reprise
