#include "reprise/platform/training_op_cases.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "reprise/ops/add.hpp"
#include "reprise/ops/batch_norm.hpp"
#include "reprise/ops/batch_norm_grad.hpp"
#include "reprise/ops/binary_cross_entropy.hpp"
#include "reprise/ops/dropout.hpp"
#include "reprise/ops/embedding_grad.hpp"
#include "reprise/ops/gelu.hpp"
#include "reprise/ops/gradient_norm.hpp"
#include "reprise/ops/layer_norm.hpp"
#include "reprise/ops/layer_norm_gelu.hpp"
#include "reprise/ops/layer_norm_grad.hpp"
#include "reprise/ops/moving_average.hpp"
#include "reprise/ops/multiply_by.hpp"
#include "reprise/ops/optimizers.hpp"
#include "reprise/ops/silu.hpp"
#include "reprise/ops/softmax_cross_entropy.hpp"
#include "reprise/ops/squared_error.hpp"
#include "reprise/platform/op_values.hpp"

namespace reprise {

namespace {

using op_values::count_of;
using op_values::in;
using op_values::random_values;
using op_values::room;
using op_values::to;
using words = std::vector<std::int32_t>;

void show_norms(const see_case& see) {
  for (const std::int64_t width : {1, 7, 33, 256, 1000}) {
    const std::int64_t rows = width == 33 ? 2000 : 45;
    const std::string name = fmt::format("{} rows of {}", rows, width);
    const auto x = random_values<float>(count_of(rows, width), 50, 4.0F);
    const auto gain = random_values<float>(count_of(1, width), 51);
    const auto bias = random_values<float>(count_of(1, width), 52);
    const auto dy = random_values<float>(x.size(), 53);
    auto y = room<float>(x.size());
    auto kept = room<float>(count_of(rows, 2));
    see(case_of(layer_norm_saving, name, read<float>{in(x)}, read<float>{in(gain)},
                read<float>{in(bias)}, write<float>{to(y)}, write<float>{to(kept)}, width, 1e-5F));
    const auto stats = random_values<float>(count_of(rows, 2), 54);
    see(case_of(layer_norm_input_grad, name, read<float>{in(x)}, read<float>{in(gain)},
                read<float>{in(stats)}, read<float>{in(dy)}, write<float>{to(y)}, width));
    see(case_of(layer_norm_gelu_saving, name, read<float>{in(x)}, read<float>{in(gain)},
                read<float>{in(bias)}, write<float>{to(y)}, write<float>{to(kept)}, width, 1e-5F));
    see(case_of(layer_norm_gelu_input_grad, name, read<float>{in(x)}, read<float>{in(gain)},
                read<float>{in(bias)}, read<float>{in(stats)}, read<float>{in(dy)},
                write<float>{to(y)}, width));
    for (const gradient_rule by : {gradient_rule::write, gradient_rule::add}) {
      auto dgain = random_values<float>(gain.size(), 55);
      auto dbias = random_values<float>(gain.size(), 56);
      const words rule{static_cast<std::int32_t>(by)};
      const std::string ruled =
          fmt::format("{}, {}", name, by == gradient_rule::add ? "added" : "written");
      see(case_of(layer_norm_weight_grad, ruled, read<float>{in(x)}, read<float>{in(stats)},
                  read<float>{in(dy)}, inout<float>{to(dgain)}, inout<float>{to(dbias)},
                  read<std::int32_t>{in(rule)}, read<std::int32_t>{in(rule)}, width));
      see(case_of(layer_norm_gelu_weight_grad, ruled, read<float>{in(x)}, read<float>{in(gain)},
                  read<float>{in(bias)}, read<float>{in(stats)}, read<float>{in(dy)},
                  inout<float>{to(dgain)}, inout<float>{to(dbias)}, read<std::int32_t>{in(rule)},
                  read<std::int32_t>{in(rule)}, width));
    }
  }
}

void show_batch_norms(const see_case& see) {
  for (const std::int64_t width : {1, 7, 33, 256}) {
    const std::int64_t rows = width == 33 ? 2000 : 45;
    const std::string name = fmt::format("{} rows of {}", rows, width);
    const auto x = random_values<float>(count_of(rows, width), 70, 4.0F);
    const auto gain = random_values<float>(count_of(1, width), 71);
    const auto bias = random_values<float>(count_of(1, width), 72);
    const auto dy = random_values<float>(x.size(), 73);
    auto running = random_values<float>(count_of(2, width), 74);
    for (float& one : running) one *= one;
    auto y = room<float>(x.size());
    auto kept = room<float>(running.size());
    see(case_of(batch_norm, name, read<float>{in(x)}, read<float>{in(gain)}, read<float>{in(bias)},
                inout<float>{to(running)}, write<float>{to(y)}, write<float>{to(kept)}, width,
                1e-5F, 0.1F));
    see(case_of(frozen_batch_norm, name, read<float>{in(x)}, read<float>{in(gain)},
                read<float>{in(bias)}, read<float>{in(running)}, write<float>{to(y)}, width,
                1e-5F));
    see(case_of(frozen_batch_norm_grad, name, read<float>{in(gain)}, read<float>{in(running)},
                read<float>{in(dy)}, write<float>{to(y)}, width, 1e-5F));
    const auto stats = random_values<float>(running.size(), 75);
    const auto sums = random_values<float>(running.size(), 76);
    see(case_of(batch_norm_input_grad, name, read<float>{in(x)}, read<float>{in(gain)},
                read<float>{in(stats)}, read<float>{in(sums)}, read<float>{in(dy)},
                write<float>{to(y)}, width));
    for (const gradient_rule by : {gradient_rule::write, gradient_rule::add}) {
      auto dgain = random_values<float>(gain.size(), 77);
      auto dbias = random_values<float>(gain.size(), 78);
      const words rule{static_cast<std::int32_t>(by)};
      see(case_of(batch_norm_weight_grad,
                  fmt::format("{}, {}", name, by == gradient_rule::add ? "added" : "written"),
                  read<float>{in(x)}, read<float>{in(stats)}, read<float>{in(dy)},
                  write<float>{to(kept)}, inout<float>{to(dgain)}, inout<float>{to(dbias)},
                  read<std::int32_t>{in(rule)}, read<std::int32_t>{in(rule)}, width));
    }
  }
}

void show_losses(const see_case& see) {
  const std::vector<float> dloss{0.7F};
  for (const std::int64_t classes : {1, 10, 33, 256, 1000}) {
    const std::int64_t rows = classes == 33 ? 1500 : 21;
    const std::string name = fmt::format("{} rows of {} classes", rows, classes);
    const auto logits = random_values<float>(count_of(rows, classes), 57, 6.0F);
    words targets;
    for (std::int64_t i = 0; i < rows; ++i) {
      targets.push_back(i % 4 == 2 ? -1 : static_cast<std::int32_t>(11 * i % classes));
    }
    auto loss = room<float>(1);
    auto counted = room<float>(1);
    see(case_of(softmax_cross_entropy, name, read<float>{in(logits)},
                read<std::int32_t>{in(targets)}, write<float>{to(loss)}, write<float>{to(counted)},
                classes));
    const std::vector<float> sixteen{16.0F};
    auto dlogits = room<float>(logits.size());
    see(case_of(softmax_cross_entropy_grad, name, read<float>{in(logits)},
                read<std::int32_t>{in(targets)}, read<float>{in(sixteen)}, read<float>{in(dloss)},
                write<float>{to(dlogits)}, classes));
  }
  for (const std::int64_t count : {1, 1025, 4097, 50001}) {
    const std::string name = fmt::format("{} elements", count);
    const auto x = random_values<float>(count_of(1, count), 58);
    const auto target = random_values<float>(count_of(1, count), 59);
    auto loss = room<float>(1);
    auto dx = room<float>(x.size());
    see(case_of(squared_error, name, read<float>{in(x)}, read<float>{in(target)},
                write<float>{to(loss)}));
    see(case_of(squared_error_grad, name, read<float>{in(x)}, read<float>{in(target)},
                read<float>{in(dloss)}, write<float>{to(dx)}));
    const auto logits = random_values<float>(x.size(), 67, 20.0F);
    auto shares = random_values<float>(x.size(), 68, 1.0F);
    for (float& share : shares) share = share < 0 ? -share : share;
    see(case_of(binary_cross_entropy, name, read<float>{in(logits)}, read<float>{in(shares)},
                write<float>{to(loss)}));
    see(case_of(binary_cross_entropy_grad, name, read<float>{in(logits)}, read<float>{in(shares)},
                read<float>{in(dloss)}, write<float>{to(dx)}));
    see(case_of(binary_cross_entropy_target_grad, name, read<float>{in(logits)},
                read<float>{in(dloss)}, write<float>{to(dx)}));
  }
}

void show_gradient_norms(const see_case& see) {
  for (const std::int64_t count : {1, 1025, 4097, 50001}) {
    const std::string name = fmt::format("{} elements", count);
    const std::vector<float> by{1024.0F, 0.5F};
    auto grad = random_values<float>(count_of(1, count), 79, 900.0F);
    std::vector<double> squares{0.75};
    for (const gradient_rule rule : {gradient_rule::write, gradient_rule::add}) {
      see(case_of(gradient_squares,
                  fmt::format("{}, {}", name, rule == gradient_rule::add ? "added" : "written"),
                  read<float>{in(by)}, read<float>{in(grad)}, inout<double>{to(squares)}, rule));
    }
    const std::vector<float> facts{3.0F, 1.0F, 0.3F};
    see(case_of(scale_gradients, name, read<float>{in(by)}, read<float>{in(facts)},
                inout<float>{to(grad)}));
    const std::vector<float> decay{0.9F};
    const auto value = random_values<float>(grad.size(), 80);
    see(case_of(moving_average, name, read<float>{in(decay)}, read<float>{in(value)},
                inout<float>{to(grad)}));
  }
  for (const double sum : {0.0, 0.01, 123.0, 1e60}) {
    for (const float most : {0.0F, 2.0F}) {
      const std::vector<float> by{1.0F, most};
      const std::vector<double> squares{sum};
      auto facts = room<float>(3);
      see(case_of(gradient_norm, fmt::format("{} at most {}", sum, most), read<float>{in(by)},
                  read<double>{in(squares)}, write<float>{to(facts)}));
    }
  }
}

// A fifth of the rows are token 1's; every eleventh is no token's.
void show_embedding_grads(const see_case& see) {
  struct shape {
    std::int64_t rows, vocabulary, width;
  };
  for (const auto& [rows, vocabulary, width] :
       {shape{1, 1, 1}, shape{200, 3, 33}, shape{6000, 2, 256}, shape{3000, 256, 520}}) {
    words tokens;
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t other = i % 11 == 10 ? vocabulary : 7 * i % vocabulary;
      tokens.push_back(static_cast<std::int32_t>(i % 5 == 1 ? 1 % vocabulary : other));
    }
    const auto dy = random_values<float>(count_of(rows, width), 65);
    for (const gradient_rule by : {gradient_rule::write, gradient_rule::add}) {
      auto table = random_values<float>(count_of(vocabulary, width), 66);
      const words rule{static_cast<std::int32_t>(by)};
      see(case_of(embedding_grad,
                  fmt::format("{} rows of {} of {} tokens, {}", rows, width, vocabulary,
                              by == gradient_rule::add ? "added" : "written"),
                  read<std::int32_t>{in(tokens)}, read<float>{in(dy)}, inout<float>{to(table)},
                  read<std::int32_t>{in(rule)}, width));
    }
  }
}

void show_elements(const see_case& see) {
  const std::vector<std::uint64_t> base{42, 100};
  const std::vector<float> of_sgd{0.1F, 0.9F, 0.01F};
  const std::vector<float> of_adamw{0.1F, 0.9F, 0.99F, 1e-8F, 0.01F, 0.1F, 0.01F};
  for (const std::int64_t count : {1, 31, 1000, 12345}) {
    const std::string name = fmt::format("{} elements", count);
    const auto x = random_values<float>(count_of(1, count), 60, 8.0F);
    const auto dy = random_values<float>(x.size(), 61);
    auto out = room<float>(x.size());
    see(case_of(gelu_grad, name, read<float>{in(x)}, read<float>{in(dy)}, write<float>{to(out)}));
    see(case_of(silu, name, read<float>{in(x)}, write<float>{to(out)}));
    see(case_of(silu_grad, name, read<float>{in(x)}, read<float>{in(dy)}, write<float>{to(out)}));
    see(case_of(add, name, read<float>{in(x)}, read<float>{in(dy)}, write<float>{to(out)}));
    see(case_of(multiply_by, name, read<float>{in(x)}, write<float>{to(out)}, 0.3F));
    see(case_of(dropout, name, read<float>{in(x)}, read<std::uint64_t>{in(base)},
                write<float>{to(out)}, std::uint64_t{7}, 0.25F));
    auto weight = random_values<float>(x.size(), 62);
    auto m = random_values<float>(x.size(), 63);
    auto v = random_values<float>(x.size(), 64);
    for (float& one : v) one *= one;
    see(case_of(sgd, name, read<float>{in(of_sgd)}, read<float>{in(dy)}, inout<float>{to(m)},
                inout<float>{to(weight)}));
    see(case_of(adamw, name, read<float>{in(of_adamw)}, read<float>{in(dy)}, inout<float>{to(m)},
                inout<float>{to(v)}, inout<float>{to(weight)}));
  }
}

}  // namespace

void show_training_op_cases(const see_case& see) {
  show_norms(see);
  show_batch_norms(see);
  show_losses(see);
  show_gradient_norms(see);
  show_elements(see);
  show_embedding_grads(see);
}

}  // namespace reprise
