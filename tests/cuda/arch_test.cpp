// Which code a card runs, and which cells are there because of it: NVIDIA's rules, as tables.
#include "reprise/cuda/arch.hpp"

#include <gtest/gtest.h>

#include "reprise/base/error.hpp"
#include "reprise/cuda/device.hpp"

namespace reprise::cuda {
namespace {

using chain = std::vector<std::string>;

constexpr capability a100{8, 0}, a10{8, 6}, orin{8, 7}, l40{8, 9}, h200{9, 0}, b200{10, 0},
    b300{10, 3}, rtx5090{12, 0}, spark{12, 1}, t4{7, 5};

built_code only(const char* one) {
  const build made = parse_build(one);
  EXPECT_EQ(made.size(), 1U) << one;
  return made.at(0);
}

struct runs_row {
  const char* code;
  std::vector<capability> on;
  std::vector<capability> not_on;
};

void expect_runs(const runs_row& row) {
  const built_code code = only(row.code);
  for (const capability card : row.on) {
    EXPECT_TRUE(runs(code, card)) << row.code << " on " << card.major << "." << card.minor;
  }
  for (const capability card : row.not_on) {
    EXPECT_FALSE(runs(code, card)) << row.code << " on " << card.major << "." << card.minor;
  }
}

TEST(machine_code, runs_on_its_own_major_version_and_equal_or_higher_minor) {
  expect_runs({"80-real", {a100, a10, l40}, {t4, h200, b200, rtx5090}});
  expect_runs({"86-real", {a10, l40}, {a100, h200}});
  expect_runs({"89-real", {l40}, {a100, a10, h200}});
  expect_runs({"90-real", {h200}, {l40, b200, rtx5090}});
  expect_runs({"100-real", {b200, b300}, {h200, rtx5090}});
  expect_runs({"120-real", {rtx5090, spark}, {b200, b300}});
}

TEST(machine_code, does_not_pass_between_embedded_cards_and_others) {
  expect_runs({"87-real", {orin}, {a100, a10, l40}});
  expect_runs({"80-real", {}, {orin}});
  expect_runs({"80-virtual", {orin}, {}});
}

TEST(ptx, runs_forward_and_never_back) {
  expect_runs({"80-virtual", {a100, a10, l40, h200, b200, b300, rtx5090, spark}, {t4}});
  expect_runs({"90-virtual", {h200, b200, rtx5090}, {a100, l40}});
  expect_runs({"120-virtual", {rtx5090, spark}, {h200, b200, b300}});
}

TEST(arch_specific_code, runs_on_exactly_its_own_card_as_machine_code_and_as_ptx) {
  for (const char* code : {"90a-real", "90a-virtual"}) {
    expect_runs({code, {h200}, {a100, l40, b200, b300, rtx5090}});
  }
  for (const char* code : {"100a-real", "100a-virtual"}) {
    expect_runs({code, {b200}, {h200, b300, rtx5090}});
  }
}

TEST(family_code, runs_on_its_card_and_later_minors_of_its_major) {
  for (const char* code : {"100f-real", "100f-virtual"}) {
    expect_runs({code, {b200, b300}, {h200, rtx5090, spark}});
  }
  expect_runs({"103f-real", {b300}, {b200, rtx5090}});
  expect_runs({"120f-virtual", {rtx5090, spark}, {b200, b300}});
}

struct chosen_row {
  const char* build_list;
  capability card;
  const char* taken;  // empty: none runs
};

TEST(driver, takes_machine_code_before_ptx_and_the_newest_that_runs) {
  const chosen_row rows[] = {
      {"80-virtual 90-real", a100, "PTX for 8.0"},
      {"80-virtual 90-real", l40, "PTX for 8.0"},
      {"80-virtual 90-real", h200, "machine code for 9.0"},
      {"80-virtual 90-real", b200, "PTX for 8.0"},
      {"80-virtual 90-real", t4, ""},
      {"80", a10, "machine code for 8.0"},
      {"80-real 86-virtual", a10, "machine code for 8.0"},
      {"80-real 90-virtual", h200, "PTX for 9.0"},
      {"80-real 86-real", l40, "machine code for 8.6"},
      {"90-real 90a-real", h200, "machine code for 9.0a"},
      {"90a", b200, ""},
      {"90a 80-virtual", b200, "PTX for 8.0"},
      {"100f", b300, "machine code for 10.0f"},
      {"100f 103-real", b300, "machine code for 10.3"},
      {"80-real", h200, ""},
      {"", h200, ""},
  };
  for (const chosen_row& row : rows) {
    const build of = parse_build(row.build_list);
    const built_code* const taken = code_for(row.card, of);
    EXPECT_EQ(taken == nullptr ? "" : text_of(*taken), row.taken)
        << row.build_list << " on " << row.card.major << "." << row.card.minor;
  }
}

struct chain_row {
  const char* build_list;
  capability card;
  chain cells;
};

TEST(arch_chain_of_a_card, has_the_cells_that_its_code_was_compiled_for) {
  const chain_row rows[] = {
      // PTX of 8.0 runs on all of these, and has nothing that came after 8.0.
      {"80-virtual", a100, {"sm_80", "sm_75"}},
      {"80-virtual", l40, {"sm_80", "sm_75"}},
      {"80-virtual", h200, {"sm_80", "sm_75"}},
      {"80-virtual 90-real", a10, {"sm_80", "sm_75"}},
      {"80-virtual 90-real", h200, {"sm_90", "sm_89", "sm_88", "sm_87", "sm_86", "sm_80", "sm_75"}},
      {"80-virtual 90a-real",
       h200,
       {"sm_90a", "sm_90", "sm_89", "sm_88", "sm_87", "sm_86", "sm_80", "sm_75"}},
      {"80-virtual 90a-real", b200, {"sm_80", "sm_75"}},
      {"86", l40, {"sm_86", "sm_80", "sm_75"}},
      {"86", a100, {}},
      {"90a", a100, {}},
      {"90a", l40, {}},
      {"80-virtual", t4, {}},
      {"", h200, {}},
  };
  for (const chain_row& row : rows) {
    EXPECT_EQ(arch_chain(row.card, parse_build(row.build_list)), row.cells)
        << row.build_list << " on " << row.card.major << "." << row.card.minor;
  }
}

TEST(arch_chain_of_a_card, has_family_cells_of_its_major_only) {
  const chain b300_cells = arch_chain(b300, parse_build("100f"));
  EXPECT_EQ(chain(b300_cells.begin(), b300_cells.begin() + 3),
            (chain{"sm_100f", "sm_100", "sm_90"}));
  const chain spark_cells = arch_chain(spark, parse_build("121a"));
  EXPECT_EQ(chain(spark_cells.begin(), spark_cells.begin() + 6),
            (chain{"sm_121a", "sm_121f", "sm_121", "sm_120f", "sm_120", "sm_110"}));
  EXPECT_EQ(arch_chain(rtx5090, parse_build("100f-virtual 80-virtual")), (chain{"sm_80", "sm_75"}));
  EXPECT_EQ(arch_chain(b200, parse_build("100")).at(0), "sm_100");
}

TEST(arch_chain_of_a_card, that_is_newer_than_this_build_is_that_of_the_ptx) {
  const chain future = arch_chain({13, 0}, parse_build("90-real 121-virtual"));
  ASSERT_GE(future.size(), 3U);
  EXPECT_EQ(chain(future.begin(), future.begin() + 3), (chain{"sm_121", "sm_120", "sm_110"}));
  EXPECT_EQ(arch_chain({13, 0}, parse_build("130")).at(0), "sm_130");
}

TEST(build_list, is_read_as_cmake_means_it) {
  EXPECT_EQ(text_of(parse_build("80-virtual 90-real")), "PTX for 8.0, machine code for 9.0");
  EXPECT_EQ(text_of(parse_build("121a")), "machine code for 12.1a, PTX for 12.1a");
  EXPECT_EQ(text_of(parse_build("")), "no code");
}

TEST(build_list, refuses_what_is_no_architecture_and_names_it) {
  for (const char* wrong : {"native", "all", "9a", "80a", "90f", "x", "80-", "-real", "90aa"}) {
    try {
      parse_build(std::string{"80-real "} + wrong);
      ADD_FAILURE() << wrong << " was taken";
    } catch (const usage_error& refusal) {
      EXPECT_NE(std::string{refusal.what()}.find(wrong), std::string::npos) << refusal.what();
    }
  }
}

TEST(this_build, has_code_where_it_has_a_cuda_half_and_its_cards_say_which) {
  EXPECT_EQ(this_build().empty(), cuda_toolkit_version().empty());
  cuda_row card;
  card.name = "cuda:3";
  card.compute_major = h200.major;
  card.compute_minor = h200.minor;
  const device_traits traits = traits_of(card);
  EXPECT_EQ(traits.name, "cuda:3");
  EXPECT_EQ(traits.bodies, device_kind::cuda);
  EXPECT_EQ(traits.arch_chain, arch_chain(h200, this_build()));
  EXPECT_TRUE(traits.arch_note.starts_with("compute 9.0 with ")) << traits.arch_note;
}

}  // namespace
}  // namespace reprise::cuda
