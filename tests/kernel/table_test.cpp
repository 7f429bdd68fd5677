// The table a device carries: which body it takes of those there are, and how it finds it.
#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/kernel/registry.hpp"

namespace reprise {
namespace {

constexpr kernel<void(write<float>)> paint{"paint"};
constexpr kernel<void(write<double>)> paint_wide{"paint"};

template <int Number>
void body(cpu_call&, write<float>) {}
void wide_body(cpu_call&, write<double>) {}

template <int Number>
void (*const erased)() = reinterpret_cast<void (*)()>(&body<Number>);

device_traits avx2_machine() {
  device_traits traits;
  traits.name = "cpu";
  traits.arch_chain = {"avx2", "generic"};
  return traits;
}

void (*chosen(const kernel_registry& kernels, const device_traits& device))() {
  return kernel_table{kernels, device}.resolve(paint.id(), paint.name()).body;
}

TEST(kernel_table, takes_the_cell_that_is_first_in_the_devices_chain) {
  kernel_registry kernels;
  kernels.add(paint, {{device_kind::cpu, "generic", body<1>},
                      {device_kind::cpu, "avx512", body<3>},
                      {device_kind::cpu, "avx2", body<2>}});
  EXPECT_EQ(chosen(kernels, avx2_machine()), erased<2>);
  device_traits better = avx2_machine();
  better.arch_chain = {"avx512", "avx2", "generic"};
  EXPECT_EQ(chosen(kernels, better), erased<3>);
  device_traits plain = avx2_machine();
  plain.arch_chain = {"generic"};
  EXPECT_EQ(chosen(kernels, plain), erased<1>);
}

TEST(kernel_table, does_not_mind_the_order_of_registration) {
  kernel_registry kernels;
  kernels.add(paint, {{device_kind::cpu, "avx2", body<2>}});
  kernels.add(paint, {{device_kind::cpu, "generic", body<1>}});
  EXPECT_EQ(chosen(kernels, avx2_machine()), erased<2>);
}

TEST(kernel_table, passes_over_cells_that_were_not_built) {
  kernel_registry kernels;
  kernels.add(paint,
              {{device_kind::cpu, "avx2", not_built{}}, {device_kind::cpu, "generic", body<1>}});
  EXPECT_EQ(chosen(kernels, avx2_machine()), erased<1>);
}

TEST(kernel_table, passes_over_other_variants_and_other_devices) {
  kernel_registry kernels;
  kernels.add(paint, {{device_kind::cpu, "avx2", body<2>, "fast"},
                      {device_kind::cuda, "avx2", not_built{}},
                      {device_kind::cpu, "generic", body<1>}});
  EXPECT_EQ(chosen(kernels, avx2_machine()), erased<1>);
}

TEST(kernel_table, keeps_kernels_of_one_name_and_other_types_apart) {
  kernel_registry kernels;
  kernels.add(paint, {{device_kind::cpu, "generic", body<1>}});
  kernels.add(paint_wide, {{device_kind::cpu, "generic", wide_body}});
  const kernel_table table{kernels, avx2_machine()};
  EXPECT_EQ(table.resolve(paint.id(), "paint").kernel, "paint(w:f32)");
  EXPECT_EQ(table.resolve(paint_wide.id(), "paint").kernel, "paint(w:f64)");
  EXPECT_EQ(table.resolved().size(), 2U);
}

std::string refusal_of(const kernel_registry& kernels) {
  try {
    chosen(kernels, avx2_machine());
  } catch (const usage_error& refusal) {
    return refusal.what();
  }
  return "it was found";
}

TEST(kernel_table, refuses_a_kernel_without_a_cell_and_says_which_there_are) {
  kernel_registry kernels;
  EXPECT_EQ(refusal_of(kernels),
            "kernel paint has no body for cpu: it has none; add a cell for it, or open another "
            "device");
  kernels.add(paint_wide, {{device_kind::cpu, "generic", wide_body}});
  EXPECT_NE(refusal_of(kernels).find("it has none"), std::string::npos) << "another kernel's cell";
  kernels.add(paint,
              {{device_kind::cuda, "sm_80", not_built{}}, {device_kind::cpu, "avx512", body<3>}});
  EXPECT_EQ(refusal_of(kernels),
            "kernel paint has no body for cpu: it has cuda sm_80 (not built), cpu avx512; add a "
            "cell for it, or open another device");
}

TEST(kernel_table, names_the_variant_of_a_cell_that_is_not_the_default) {
  kernel_registry kernels;
  kernels.add(paint, {{device_kind::cpu, "generic", body<1>, "fast"}});
  EXPECT_NE(refusal_of(kernels).find("it has cpu generic fast;"), std::string::npos)
      << refusal_of(kernels);
}

// Bodies of paint: 1 generic, 2 avx2, 3 avx2 fast, 4 generic fast, 5 generic small.
kernel_registry with_variants() {
  kernel_registry kernels;
  kernels.add(paint, {{device_kind::cpu, "generic", body<1>},
                      {device_kind::cpu, "avx2", body<2>},
                      {device_kind::cpu, "avx2", body<3>, "fast"},
                      {device_kind::cpu, "generic", body<4>, "fast"},
                      {device_kind::cpu, "generic", body<5>, "small"}});
  return kernels;
}

void (*chosen_by(const std::vector<variant_wish>& wishes, const device_traits& device))() {
  return kernel_table{with_variants(), device, wishes}.resolve(paint.id(), paint.name()).body;
}

TEST(kernel_table, takes_a_variant_that_was_asked_for_where_it_is) {
  const device_traits avx2 = avx2_machine();
  device_traits plain = avx2;
  plain.arch_chain = {"generic"};
  EXPECT_EQ(chosen_by({{"fast"}}, avx2), erased<3>);
  EXPECT_EQ(chosen_by({{"fast"}}, plain), erased<4>);
  EXPECT_EQ(chosen_by({{"small"}}, avx2), erased<2>) << "the default of a better rung comes first";
  EXPECT_EQ(chosen_by({{"small"}}, plain), erased<5>);
  EXPECT_EQ(chosen_by({{"small"}, {"fast"}}, plain), erased<5>) << "the first wish";
  EXPECT_EQ(chosen_by({{"none"}, {"fast"}}, plain), erased<4>);
  EXPECT_EQ(chosen_by({{"none"}}, plain), erased<1>) << "else the default";
}

TEST(kernel_table, takes_a_variant_for_the_kernel_that_was_named) {
  const device_traits avx2 = avx2_machine();
  EXPECT_EQ(chosen_by({{"fast", "paint"}}, avx2), erased<3>);
  EXPECT_EQ(chosen_by({{"fast", "paint(w:f32)"}}, avx2), erased<3>);
  EXPECT_EQ(chosen_by({{"fast", "paint(w:f64)"}}, avx2), erased<2>);
  EXPECT_EQ(chosen_by({{"fast", "pain"}}, avx2), erased<2>);
}

bool says_no(const device_traits&) {
  return false;
}
bool says_yes_to_its_name(const device_traits& device) {
  return device.name == "cpu";
}
bool throws(const device_traits&) {
  throw std::runtime_error{"the driver hangs"};
}

TEST(kernel_table, passes_over_a_cell_whose_predicate_says_no_or_throws) {
  for (const auto predicate : {says_no, throws}) {
    kernel_registry kernels;
    kernels.add(
        paint,
        {{.device = device_kind::cpu, .arch = "avx2", .body = body<2>, .available = predicate},
         {.device = device_kind::cpu,
          .arch = "generic",
          .body = body<1>,
          .available = says_yes_to_its_name}});
    EXPECT_EQ(chosen(kernels, avx2_machine()), erased<1>);
  }
}

TEST(kernel_table, says_what_a_predicate_said_or_threw) {
  kernel_registry kernels;
  kernels.add(
      paint,
      {{.device = device_kind::cpu, .arch = "avx2", .body = body<2>, .available = throws},
       {.device = device_kind::cpu, .arch = "generic", .body = body<1>, .available = says_no}});
  EXPECT_EQ(refusal_of(kernels),
            "kernel paint has no body for cpu: it has cpu avx2 (its predicate threw: the driver "
            "hangs), cpu generic (its predicate says no); add a cell for it, or open another "
            "device");
}

TEST(why_not, asks_no_predicate_of_a_cell_that_could_not_run_anyway) {
  cell_row cell;
  cell.arch = "avx512";
  cell.built = true;
  cell.available = throws;
  EXPECT_EQ(why_not(cell, avx2_machine()), "it needs avx512, and here is avx2, generic");
  device_traits card = avx2_machine();
  card.arch_note = "compute 8.0 with PTX for 8.0";
  EXPECT_EQ(why_not(cell, card), "it needs avx512, and here is compute 8.0 with PTX for 8.0");
  cell.arch = checked_arch;
  EXPECT_EQ(why_not(cell, card), "only simulated GPUs run checked bodies");
  cell.built = false;
  EXPECT_EQ(why_not(cell, card), "not built");
  cell.device = device_kind::cuda;
  EXPECT_EQ(why_not(cell, card), "it is for cuda");
}

TEST(fingerprint, is_that_of_the_cells_that_were_taken) {
  const device_traits avx2 = avx2_machine();
  const auto of = [&](const kernel_registry& kernels,
                      const std::vector<variant_wish>& wishes = {}) {
    return kernel_table{kernels, avx2, wishes}.fingerprint();
  };
  const auto two_kernels = [](bool wide_first) {
    kernel_registry kernels;
    if (wide_first) kernels.add(paint_wide, {{device_kind::cpu, "generic", wide_body}});
    kernels.add(paint, {{device_kind::cpu, "generic", body<1>}});
    if (!wide_first) kernels.add(paint_wide, {{device_kind::cpu, "generic", wide_body}});
    return kernels;
  };
  const kernel_registry variants = with_variants();
  EXPECT_EQ(of(variants), of(variants));
  EXPECT_NE(of(variants), of(variants, {{"fast"}})) << "another variant";
  EXPECT_NE(of(variants), of(variants.only([](const cell_row& r) { return r.arch != "avx2"; })))
      << "another arch";
  EXPECT_NE(of(two_kernels(true)), of(variants)) << "another kernel";
  EXPECT_EQ(of(two_kernels(true)), of(two_kernels(false))) << "the order of registration";
  EXPECT_EQ(of(variants),
            of(variants.only([](const cell_row& r) { return r.variant == "default"; })))
      << "cells that are not taken";
}

TEST(kernel_table, lists_a_resolved_kernel_once) {
  kernel_registry kernels;
  kernels.add(paint, {{device_kind::cpu, "generic", body<1>}, {device_kind::cpu, "avx2", body<2>}});
  const kernel_table table{kernels, avx2_machine()};
  ASSERT_EQ(table.resolved().size(), 1U);
  EXPECT_EQ(table.resolved()[0].arch, "avx2");
}

TEST(kernel_table, outlives_the_registry_it_was_made_from) {
  std::shared_ptr<const kernel_table> table;
  {
    kernel_registry kernels;
    kernels.add(paint, {{device_kind::cpu, "generic", body<1>}});
    table = resolve_kernels(kernels, avx2_machine());
  }
  EXPECT_EQ(table->resolve(paint.id(), "paint").body, erased<1>);
}

// Six letters for six places: 64 names, so that the slots of one table are shared by many.
template <std::size_t Number>
struct numbered {
  static constexpr char name[] = {Number & 1 ? 'a' : 'b',
                                  Number & 2 ? 'a' : 'b',
                                  Number & 4 ? 'a' : 'b',
                                  Number & 8 ? 'a' : 'b',
                                  Number & 16 ? 'a' : 'b',
                                  Number & 32 ? 'a' : 'b',
                                  '\0'};
  static constexpr kernel<void(write<float>)> value{name};
};

template <std::size_t... Numbers>
void add_each(kernel_registry& kernels, std::vector<kernel_id>& ids,
              std::index_sequence<Numbers...>) {
  (kernels.add(numbered<Numbers>::value,
               {{device_kind::cpu, "generic", body<static_cast<int>(Numbers)>}}),
   ...);
  (ids.push_back(numbered<Numbers>::value.id()), ...);
}

TEST(kernel_table, finds_each_of_many_kernels_though_their_places_collide) {
  kernel_registry kernels;
  std::vector<kernel_id> ids;
  add_each(kernels, ids, std::make_index_sequence<64>{});
  const kernel_table table{kernels, avx2_machine()};
  ASSERT_EQ(table.resolved().size(), 64U);

  std::size_t collisions = 0;
  std::vector<bool> taken(256);  // as many slots as 64 kernels get
  for (const kernel_id id : ids) {
    const auto place = static_cast<std::size_t>(id) % taken.size();
    collisions += taken[place] ? 1 : 0;
    taken[place] = true;
  }
  EXPECT_GT(collisions, 3U) << "the test looks for kernels whose places collide";

  for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(table.resolve(ids[i], "").id, ids[i]);
  EXPECT_NE(table.resolve(ids[0], "").body, table.resolve(ids[1], "").body);
  EXPECT_THROW(table.resolve(paint.id(), "paint"), usage_error);
}

}  // namespace
}  // namespace reprise
