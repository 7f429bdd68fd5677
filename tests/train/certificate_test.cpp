// What the recordings of a part rest on (certificate.hpp), and what its gates look at (gates.hpp),
// each on its own.
#include "reprise/train/certificate.hpp"

#include "reprise/nn/dropout.hpp"
#include "reprise/nn/gelu.hpp"
#include "reprise/nn/linear.hpp"
#include "reprise/nn/silu.hpp"
#include "reprise/ops/linear.hpp"
#include "reprise/ops/narrowing.hpp"
#include "reprise/train/gates.hpp"
#include "tests/train/support.hpp"

namespace reprise::test {
namespace {

certificate certified(const nn::sequence& module, device_ref on) {
  certificate made;
  certify(module, on, made);
  return made;
}
certificate certified(std::span<const loss_term> terms, device_ref on) {
  certificate made;
  certify(terms, on, made);
  return made;
}

class certificates : public testing::Test {
 protected:
  // Of one linear layer and an activation.
  nn::sequence module_of_one() {
    nn::sequence made{"one"};
    made.add(nn::linear{own.set.at("class.weight"), own.set.at("class.bias")}).add(nn::gelu{});
    return made;
  }
  std::string drift_when(const std::function<void(parameter&)>& changes) {
    const nn::sequence module = module_of_one();
    parameter& weight = own.set.at("class.weight");
    const tensor_ref value = weight.value;
    const tensor_ref grad = weight.grad;
    const certificate then = certified(module, desk.opened);
    changes(weight);
    const std::string text = drift(then, certified(module, desk.opened));
    weight.value = value;
    weight.grad = grad;
    EXPECT_EQ(drift(then, certified(module, desk.opened)), "");
    return text;
  }

  training_desk desk{"cpu"};
  weights own{desk};
};

TEST_F(certificates, hold_while_training_updates_in_place) {
  EXPECT_EQ(drift_when([&](parameter& weight) {
              weight.version.bump();
              weight.has_grad = true;
            }),
            "");
}

TEST_F(certificates, see_each_part_of_a_parameter_that_changes) {
  constexpr const char* which = "parameter 'weight' of layer 0 'linear' ";
  const auto begins = [&](const std::string& text, const std::string& with) {
    EXPECT_TRUE(text.starts_with(which + with)) << text;
  };
  begins(drift_when([](parameter& p) { p.value.data += 4; }), "lies at 0x");
  EXPECT_EQ(drift_when([](parameter& p) { p.value.type = dtype::bf16; }),
            std::string{which} + "is of type bf16 and was recorded with f32");
  EXPECT_EQ(drift_when([](parameter& p) {
              p.value.shape = {4, 3, 2};
            }),
            std::string{which} + "has the rank 3 and was recorded with 2");
  EXPECT_EQ(drift_when([](parameter& p) {
              p.value.shape = {6, 4};
            }),
            std::string{which} + "has the extent 6 and was recorded with 4");
  EXPECT_EQ(drift_when([](parameter& p) {
              p.value.strides = {1, 4};
            }),
            std::string{which} + "has the stride 1 and was recorded with 6");
  begins(drift_when([](parameter& p) { p.grad.data += 4; }), "has its gradient at 0x");
  begins(drift_when([](parameter& p) { p.grad = {}; }), "has its gradient at 0x0 and was");
}

TEST_F(certificates, tell_modules_by_the_kinds_of_their_layers_in_order) {
  const auto of = [](auto... layers) {
    nn::sequence made{"module"};
    (made.add(layers), ...);
    return made;
  };
  const nn::sequence one = of(nn::gelu{}, nn::silu{});
  const nn::sequence same = of(nn::gelu{}, nn::silu{});
  const nn::sequence other = of(nn::silu{}, nn::gelu{});
  const nn::sequence longer = of(nn::gelu{}, nn::silu{}, nn::silu{});
  const certificate then = certified(one, desk.opened);
  EXPECT_EQ(drift(then, certified(same, desk.opened)), "");
  EXPECT_EQ(drift(then, certified(other, desk.opened)), "layer 0 'gelu' is of another kind");
  EXPECT_EQ(drift(then, certified(longer, desk.opened)), "it has 3 layers and was recorded with 2");
}

TEST_F(certificates, tell_the_kernels_that_ops_resolve_to) {
  const nn::sequence module = module_of_one();
  certificate then = certified(module, desk.opened);
  const training_desk other{"cpu"};
  certificate now = certified(module, other.opened);
  EXPECT_EQ(drift(then, now), "it is called on another device");
  // The same device, with another table.
  const training_desk fewer{"cpu",
                            [](const cell_row& one) { return one.id != narrow_to_bf16.id(); }};
  now = certified(module, fewer.opened);
  now.facts[0] = then.facts[0];
  EXPECT_EQ(drift(then, now), "its ops resolve to other kernels");
  now = certified(module, other.opened);
  now.facts[0] = then.facts[0];
  EXPECT_EQ(drift(then, now), "") << "of one build and one arch the bodies are the same";
}

TEST_F(certificates, tell_the_terms_of_a_loss_by_their_callables) {
  const nn::squared_error op;
  const auto terms_of = [](auto... ops) {
    return std::vector<loss_term>{{"term", loss_of(ops)}...};
  };
  const std::vector<loss_term> one = terms_of(op);
  const certificate then = certified(one, desk.opened);
  const std::vector<loss_term> copy = terms_of(op);
  EXPECT_EQ(drift(then, certified(copy, desk.opened)), "") << "a copy is the same callable";
  const std::vector<loss_term> anew = terms_of(nn::squared_error{});
  EXPECT_EQ(drift(then, certified(anew, desk.opened)),
            "term 0 'squared_error' is another callable");
  const std::vector<loss_term> other = terms_of(nn::softmax_cross_entropy{});
  EXPECT_EQ(drift(then, certified(other, desk.opened)),
            "layer 0 'squared_error' is of another kind");
}

TEST_F(certificates, are_read_again_without_allocating) {
  const nn::sequence module = own.trunk();
  certificate now = certified(module, desk.opened);
  const void* const facts = now.facts.data();
  now.clear();
  certify(module, desk.opened, now);
  EXPECT_EQ(now.facts.data(), facts);
}

class gates : public certificates {};

TEST_F(gates, ask_for_the_kernels_of_casts_where_casts_are_asked_for) {
  const precision casts{matrix_precision::full, cast_mode::bf16};
  EXPECT_EQ(why_not_in(casts, desk.opened), "");
  for (const bool narrows : {true, false}) {
    const training_desk lacking{
        "cpu", [&](const cell_row& one) {
          return one.id != (narrows ? narrow_to_bf16.id() : linear_weight_grad<bf16>.id());
        }};
    EXPECT_EQ(why_not_in({}, lacking.opened), "");
    EXPECT_EQ(why_not_in(casts, lacking.opened),
              "it casts to bf16, and " + std::string{device_ref{lacking.opened}.name()} +
                  " has no body of kernel " + (narrows ? "narrow_to_bf16" : "linear_weight_grad") +
                  " for that; add a cell for it, or leave the casts out");
  }
}

TEST_F(gates, ask_for_a_layer) {
  EXPECT_EQ(why_not_of(nn::sequence{"empty"}), "it has no layer; add one");
  EXPECT_EQ(why_not_of(module_of_one()), "");
}

TEST_F(gates, take_the_layers_on_a_list) {
  const std::vector<std::type_index> nn_kinds = layer_kinds_of_nn();
  EXPECT_EQ(why_not_of(own.trunk(), nn_kinds), "");
  const std::array<std::type_index, 1> linears{typeid(nn::linear)};
  EXPECT_EQ(why_not_of(module_of_one(), linears),
            "layer 1 'gelu' is of a kind that is not on the list of those that heads record; add "
            "its type to the list where its backward reads nothing but what its forward saved");
  nn::sequence nested{"outer"};
  nested.add(module_of_one());
  EXPECT_TRUE(has(why_not_of(nested, nn_kinds), "layer 0 'one'")) << "what is in it is not seen";
}

}  // namespace
}  // namespace reprise::test
