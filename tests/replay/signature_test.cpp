#include "reprise/replay/signature.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reprise/base/error.hpp"

namespace reprise {
namespace {

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const usage_error& wrong) {
    return wrong.what();
  }
  return {};
}

class signature_test : public ::testing::Test {
 protected:
  signature declared{"demo"};
  input<float> x = declared.in<float>("x", {any, 4});
  input<std::int32_t> ids = declared.in<std::int32_t>("ids", {any});
  std::vector<float> values = std::vector<float>(8, 1.0F);
  std::vector<std::int32_t> tokens{1, 2};
};

TEST_F(signature_test, every_input_bound_once_with_its_type_and_pattern_passes) {
  EXPECT_EQ(refusal([&] { declared.check({x.from_host(values), ids.from_host(tokens)}); }), "");
  EXPECT_EQ(refusal([&] { declared.check({ids.from_host(tokens), x.from_host(values)}); }), "");
}

TEST_F(signature_test, an_open_extent_follows_from_the_count) {
  EXPECT_EQ(x.from_host(values).to.shape, (dims{2, 4}));
  EXPECT_EQ(ids.from_host({}).to.shape, (dims{0}));
}

TEST_F(signature_test, a_count_that_fits_no_shape_is_refused) {
  values.pop_back();
  const std::string text = refusal([&] { (void)x.from_host(values); });
  EXPECT_NE(text.find("7 elements"), std::string::npos) << text;
  EXPECT_NE(text.find("[any, 4]"), std::string::npos) << text;
}

TEST_F(signature_test, two_open_extents_need_a_shape) {
  const auto wide = declared.in<float>("wide", {any, any});
  EXPECT_NE(refusal([&] { (void)wide.from_host(values); }), "");
  EXPECT_EQ(refusal([&] { (void)wide(view<const float>{values.data(), 8}, {4, 2}); }), "");
}

TEST_F(signature_test, a_missing_input_is_refused_by_name) {
  const std::string text = refusal([&] { declared.check({x.from_host(values)}); });
  EXPECT_NE(text.find("'ids' is not bound"), std::string::npos) << text;
}

TEST_F(signature_test, an_input_bound_twice_is_refused_by_name) {
  const std::string text = refusal([&] {
    declared.check({x.from_host(values), x.from_host(values)});
  });
  EXPECT_NE(text.find("'x' is bound twice"), std::string::npos) << text;
}

TEST_F(signature_test, an_input_of_another_signature_is_refused) {
  signature other{"other"};
  const auto theirs = other.in<float>("x", {any, 4});
  const std::string text = refusal([&] {
    declared.check({theirs.from_host(values), ids.from_host(tokens)});
  });
  EXPECT_NE(text.find("another step's input"), std::string::npos) << text;
}

TEST_F(signature_test, a_null_input_is_refused_by_name) {
  const binding null = x(view<const float>{nullptr, 8});
  const std::string text = refusal([&] { declared.check({null, ids.from_host(tokens)}); });
  EXPECT_NE(text.find("'x' is null"), std::string::npos) << text;
}

TEST_F(signature_test, another_type_or_shape_is_refused_with_both_named) {
  binding wrong = x.from_host(values);
  wrong.to.type = dtype::i32;
  EXPECT_NE(refusal([&] {
              declared.check({wrong, ids.from_host(tokens)});
            }).find("i32 [2, 4]"),
            std::string::npos);
  wrong = x.from_host(values);
  wrong.to.shape = {4, 2};
  EXPECT_NE(refusal([&] {
              declared.check({wrong, ids.from_host(tokens)});
            }).find("expected f32 [any, 4]"),
            std::string::npos);
  wrong.to.shape = {8};
  EXPECT_NE(refusal([&] { declared.check({wrong, ids.from_host(tokens)}); }), "");
}

TEST_F(signature_test, a_name_is_declared_once_over_all_kinds) {
  float place = 0;
  const tensor_ref somewhere = as_tensor(view<float>{&place, 1});
  parameter weight;
  version_counter version;
  EXPECT_NE(refusal([&] { (void)declared.in<float>("x", {1}); }), "");
  EXPECT_NE(refusal([&] { (void)declared.out<float>("x"); }), "");
  EXPECT_NE(refusal([&] { declared.state("x", somewhere); }), "");
  EXPECT_NE(refusal([&] { declared.overwrites("x", somewhere); }), "");
  EXPECT_NE(refusal([&] { declared.uses("x", weight); }), "");
  EXPECT_NE(refusal([&] { declared.fact("x", version); }), "");
}

TEST(signature_ids, no_two_signatures_are_the_same) {
  EXPECT_NE(signature{"a"}.id(), signature{"a"}.id());
}

}  // namespace
}  // namespace reprise
