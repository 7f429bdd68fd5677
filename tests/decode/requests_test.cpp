#include "workloads/decode/requests.hpp"

#include <gtest/gtest.h>

#include "reprise/base/error.hpp"

namespace reprise::decode {
namespace {

model_config of(std::int64_t vocabulary, std::int64_t context) {
  model_config config;
  config.vocabulary = vocabulary;
  config.context = context;
  return config;
}

TEST(requests, repeats_of_a_prompt_are_numbered) {
  const std::vector<request> all = make_requests({{1}, {2}, {1}, {1}}, of(10, 10));
  EXPECT_EQ(all[0].repeat, 0U);
  EXPECT_EQ(all[1].repeat, 0U);
  EXPECT_EQ(all[2].repeat, 1U);
  EXPECT_EQ(all[3].repeat, 2U);
}

TEST(requests, a_prompt_may_fill_the_context_but_not_pass_it) {
  EXPECT_NO_THROW(make_requests({{1, 2, 3}}, of(10, 3)));
  EXPECT_THROW(make_requests({{1, 2, 3, 4}}, of(10, 3)), usage_error);
}

TEST(requests, an_empty_prompt_is_refused) {
  EXPECT_THROW(make_requests({{1}, {}}, of(10, 3)), usage_error);
}

TEST(requests, tokens_outside_the_vocabulary_are_refused) {
  EXPECT_NO_THROW(make_requests({{9}}, of(10, 3)));
  EXPECT_THROW(make_requests({{10}}, of(10, 3)), usage_error);
  EXPECT_THROW(make_requests({{-1}}, of(10, 3)), usage_error);
}

TEST(requests, bytes_are_tokens_and_back_whatever_their_sign) {
  const std::string text = "a\x80\xff\n";
  EXPECT_EQ(byte_tokens(text), (std::vector<std::int32_t>{97, 128, 255, 10}));
  EXPECT_EQ(token_bytes(byte_tokens(text)), text);
}

}  // namespace
}  // namespace reprise::decode
