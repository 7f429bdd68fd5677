// The manifest: every declared cell once, and for each device of the machine an answer.
#include "reprise/platform/manifest.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace reprise::test {
namespace {

device_row card(std::vector<std::string> chain, std::string note) {
  device_row row;
  row.name = "cuda:0";
  row.usable = true;
  row.traits.name = row.name;
  row.traits.bodies = device_kind::cuda;
  row.traits.arch_chain = std::move(chain);
  row.traits.arch_note = std::move(note);
  return row;
}

struct weights {};
constexpr component_kind<weights> encoder{"encoder"};
constexpr kernel<void(write<float>)> fill_up{"fill_up"};
void fill_cpu(cpu_call&, write<float>) {}
std::size_t some(write<float>) {
  return 64;
}

TEST(manifest, has_every_cell_of_both_registries_and_an_answer_for_each_device) {
  component_registry components;
  components.add(encoder, {{device_kind::cuda, {}, "fast"}});
  const kernel_registry kernels = builtin_kernels();
  const manifest made = make_manifest(kernels, components);
  EXPECT_EQ(made.kernels.size(), kernels.rows().size());
  EXPECT_EQ(made.components.size(), 1U);
  EXPECT_EQ(made.devices.size(), list_devices().size());
  for (const manifest_row& row : made.kernels) {
    ASSERT_EQ(row.on.size(), made.devices.size()) << row.name;
    EXPECT_FALSE(row.source.empty()) << row.name;
    for (std::size_t i = 0; i < row.on.size(); ++i) {
      EXPECT_EQ(row.on[i].device, made.devices[i].name);
      EXPECT_TRUE(row.built || !row.on[i].why_not.empty()) << row.name;
    }
    const bool generic = row.device == device_kind::cpu && row.arch == "generic";
    EXPECT_EQ(row.on.back().why_not.empty() && row.on.back().device == "cpu" && generic, generic)
        << row.name;
  }
}

TEST(manifest, keeps_the_cells_of_a_kernel_together) {
  const manifest made = make_manifest(builtin_kernels(), {});
  std::vector<std::string> names;
  for (const manifest_row& row : made.kernels) {
    if (names.empty() || names.back() != row.name) names.push_back(row.name);
  }
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

TEST(manifest, says_why_a_cell_is_not_available) {
  kernel_registry kernels;
  kernels.add(fill_up, {{.device = device_kind::cpu,
                         .arch = "generic",
                         .body = fill_cpu,
                         .workspace_bytes = some,
                         .source = "by hand",
                         .bound = {.relative = 0.5}},
                        {device_kind::cuda, "sm_90a", not_built{}}});
  device_row absent;
  absent.name = "cuda:1";
  absent.why_not = "its compute mode is \"prohibited\"";
  const manifest made =
      make_manifest(kernels, {}, {card({"sm_80"}, "compute 8.0 with PTX for 8.0"), absent});
  ASSERT_EQ(made.kernels.size(), 2U);
  const manifest_row& first = made.kernels[0];
  EXPECT_TRUE(first.workspace);
  EXPECT_EQ(first.source, "by hand");
  EXPECT_EQ(first.bound.relative, 0.5);
  EXPECT_EQ(first.on[0].why_not, "it is for cpu");
  EXPECT_EQ(first.on[1].why_not, "not usable: its compute mode is \"prohibited\"");
  EXPECT_FALSE(made.kernels[1].workspace);
  EXPECT_EQ(made.kernels[1].on[0].why_not, "not built");
}

TEST(manifest, has_the_cells_of_cards_by_what_the_build_has_for_them) {
  kernel_registry kernels = builtin_kernels();
  const manifest made =
      make_manifest(kernels, {}, {card({"sm_80", "sm_75"}, "compute 8.0 with PTX for 8.0")});
  for (const manifest_row& row : made.kernels) {
    if (row.device != device_kind::cuda || !row.built) continue;
    EXPECT_EQ(row.on[0].why_not,
              row.arch == "sm_80"
                  ? ""
                  : "it needs " + row.arch + ", and here is compute 8.0 with PTX for 8.0");
  }
}

TEST(manifest, shows_components_by_kind_with_device_and_variant) {
  component_registry components;
  components.add(encoder,
                 {{device_kind::cpu, [](device_ref) { return std::make_unique<weights>(); }},
                  {device_kind::cuda, {}, "fast"}});
  const manifest made = make_manifest({}, components);
  ASSERT_EQ(made.components.size(), 2U);
  EXPECT_EQ(made.components[0].name, "encoder");
  EXPECT_EQ(made.components[0].on.back().why_not, "");
  EXPECT_EQ(made.components[0].source, "manifest_test.cpp");
  EXPECT_EQ(made.components[1].variant, "fast");
  EXPECT_EQ(made.components[1].on.back().why_not, "it is for cuda");
  EXPECT_FALSE(made.components[1].built);
}

}  // namespace
}  // namespace reprise::test
