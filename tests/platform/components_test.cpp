// Components: which cell builds one, who shares it, and what its version and its source say.
#include "reprise/platform/components.hpp"

#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <vector>

#include "reprise/platform/platform.hpp"
#include "reprise/sim/device.hpp"
#include "tests/support/observe.hpp"

namespace reprise::test {
namespace {

struct codec {
  std::string made_by;
};
struct other_codec {};

constexpr component_kind<codec> text_codec{"text codec"};
constexpr component_kind<codec> image_codec{"image codec"};
constexpr component_kind<other_codec> same_name{"text codec"};

component_factory<codec> by(std::string name) {
  return [name = std::move(name)](device_ref) { return std::make_unique<codec>(codec{name}); };
}

bool says_no(const device_traits&) {
  return false;
}
bool throws(const device_traits&) {
  throw std::runtime_error{"no idea"};
}

device open_trial(const char* name = "trial:0") {
  device_traits traits;
  traits.name = name;
  traits.bodies = device_kind::trial;
  return device{sim::open_in_order(std::move(traits))};
}

class components : public testing::Test {
 protected:
  device cpu{open_device("cpu", {.threads = 1}, {})};
  device trial{open_trial()};
};

TEST_F(components, are_built_by_the_first_device_that_has_a_cell_the_variant_before_the_default) {
  component_registry cells;
  cells.add(text_codec, {{device_kind::cpu, by("cpu default")},
                         {device_kind::cpu, by("cpu fast"), "fast"},
                         {device_kind::trial, by("trial default")}});
  component_store store{cells};
  const std::array<device_ref, 2> both{trial, cpu};
  EXPECT_EQ(store.get(text_codec, both)->object->made_by, "trial default");
  EXPECT_EQ(store.get(text_codec, both, "fast")->object->made_by, "trial default")
      << "a device comes before a variant";
  EXPECT_EQ(store.get(text_codec, cpu, "fast")->object->made_by, "cpu fast");
  EXPECT_EQ(store.get(text_codec, cpu)->object->made_by, "cpu default");
}

TEST_F(components, of_the_same_key_are_one_object_however_they_were_asked_for) {
  component_registry cells;
  cells.add(text_codec,
            {{device_kind::cpu, by("default")}, {device_kind::cpu, by("fast"), "fast"}});
  component_store store{cells};
  const auto first = store.get(text_codec, cpu);
  first->version.bump();
  EXPECT_EQ(store.get(text_codec, cpu), first);
  EXPECT_EQ(store.get(text_codec, cpu, "small"), first) << "there is no small one";
  EXPECT_NE(store.get(text_codec, cpu, "fast"), first);
  const std::array<device_ref, 2> both{trial, cpu};
  EXPECT_EQ(store.get(text_codec, both), first);
  EXPECT_EQ(store.get(text_codec, cpu)->version.value(), 2U) << "its weights are shared too";
}

TEST_F(components, of_two_devices_are_two_objects) {
  component_registry cells;
  cells.add(text_codec, {{device_kind::trial, by("trial")}});
  component_store store{cells};
  const device second = open_trial("trial:1");
  EXPECT_NE(store.get(text_codec, trial), store.get(text_codec, second));
  EXPECT_EQ(store.get(text_codec, second)->device, "trial:1");
}

TEST_F(components, without_a_cell_come_from_the_factory_of_their_owner) {
  component_store store{{}};
  const auto made = store.get(text_codec, cpu, "fast", by("owner"));
  EXPECT_EQ(made->object->made_by, "owner");
  EXPECT_EQ(made->source, "its owner's factory");
  EXPECT_EQ(made->variant, "fast");
  EXPECT_EQ(store.get(text_codec, cpu, "fast", by("another")), made) << "the same key";
  EXPECT_EQ(store.get(text_codec, cpu, "small", by("another"))->object->made_by, "another");
  EXPECT_EQ(store.get(image_codec, cpu, "fast", by("images"))->object->made_by, "images");
}

TEST_F(components, say_which_cell_built_them) {
  component_registry cells;
  cells.add(text_codec, {{device_kind::cpu, by("a")},
                         {.device = device_kind::cpu,
                          .build = by("b"),
                          .variant = "fast",
                          .source = "tables from a paper"}});
  component_store store{cells};
  EXPECT_EQ(store.get(text_codec, cpu)->source, "components_test.cpp");
  EXPECT_EQ(store.get(text_codec, cpu, "fast")->source, "tables from a paper");
  EXPECT_EQ(store.get(text_codec, cpu, "fast")->variant, "fast");
  EXPECT_EQ(store.get(text_codec, cpu)->version.value(), 1U);
}

TEST_F(components, pass_over_cells_that_are_not_built_and_predicates_that_say_no_or_throw) {
  component_registry cells;
  cells.add(text_codec, {{device_kind::cpu, {}, "fast"},
                         {.device = device_kind::cpu, .build = by("no"), .available = says_no}});
  cells.add(image_codec, {{.device = device_kind::cpu, .build = by("no"), .available = throws}});
  component_store store{cells};
  EXPECT_EQ(store.get(text_codec, cpu, "fast", by("owner"))->object->made_by, "owner");
  EXPECT_EQ(
      message_of<usage_error>([&] { store.get(image_codec, cpu); }),
      "component image codec of variant default can be built on none of 1 devices: it has cpu "
      "default (its predicate threw: no idea); add a cell for one of them, or give a factory");
}

TEST_F(components, keep_nothing_of_a_builder_that_throws_or_builds_nothing) {
  int calls = 0;
  component_registry cells;
  cells.add(text_codec, {{device_kind::cpu, [&](device_ref) -> std::unique_ptr<codec> {
                            if (++calls == 1) throw std::runtime_error{"the file is short"};
                            if (calls == 2) return nullptr;
                            return std::make_unique<codec>(codec{"third"});
                          }}});
  component_store store{cells};
  EXPECT_THROW(store.get(text_codec, cpu), std::runtime_error);
  EXPECT_TRUE(has(message_of<usage_error>([&] { store.get(text_codec, cpu); }), "built nothing"));
  EXPECT_EQ(store.get(text_codec, cpu)->object->made_by, "third");
  EXPECT_EQ(calls, 3);
}

TEST_F(components, may_be_made_of_other_components) {
  component_store store{{}};
  const auto outer =
      store.get(text_codec, cpu, "default", component_factory<codec>{[&](device_ref on) {
                  const auto inner = store.get(image_codec, on, "default", by("inner"));
                  return std::make_unique<codec>(codec{"outer of " + inner->object->made_by});
                }});
  EXPECT_EQ(outer->object->made_by, "outer of inner");
}

TEST_F(components, of_one_name_and_two_types_are_two_kinds) {
  component_registry cells;
  cells.add(text_codec, {{device_kind::cpu, by("codec")}});
  cells.add(same_name,
            {{device_kind::cpu, [](device_ref) { return std::make_unique<other_codec>(); }}});
  component_store store{cells};
  EXPECT_NE(store.get(same_name, cpu)->object, nullptr);
  EXPECT_EQ(store.get(text_codec, cpu)->object->made_by, "codec");
}

TEST(component_registry, refuses_a_cell_that_is_there_unless_it_says_replace) {
  component_registry cells;
  cells.add(text_codec, {{device_kind::cpu, by("first")}});
  EXPECT_EQ(
      message_of<usage_error>([&] {
        cells.add(text_codec, {{device_kind::trial, by("new")}, {device_kind::cpu, by("second")}});
      }),
      "component text codec: the cell (cpu, default) is registered already; register it once, "
      "say replace, or give it a variant name of its own");
  EXPECT_EQ(cells.rows().size(), 1U);
  cells.add(text_codec, {{.device = device_kind::cpu, .build = by("second"), .replace = true}});
  EXPECT_EQ(cells.rows().size(), 1U);
  component_store store{cells};
  const device cpu = open_device("cpu", {.threads = 1}, {});
  EXPECT_EQ(store.get(text_codec, cpu)->object->made_by, "second");
}

}  // namespace
}  // namespace reprise::test
