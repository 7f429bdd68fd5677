// Trains one layer of your own, its forward and backward replayed, over windows of three
// micro-batches: once eagerly and once replayed, and compares the bits. docs/training.md explains
// what happens to each call.
//
// The task is to find a matrix from products with it, by squared error and gradient descent.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "reprise/device/enqueue.hpp"
#include "reprise/device/memory.hpp"
#include "reprise/grad/graphed_op.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/nn/squared_error.hpp"
#include "reprise/ops/linear.hpp"
#include "reprise/ops/optimizers.hpp"
#include "reprise/platform/platform.hpp"

namespace reprise {
namespace {

constexpr std::int64_t width = 32;
constexpr std::int64_t rows = 16;
constexpr int micro_batches = 3;
constexpr int windows = 40;

// y = x w^T. What it needs of its forward is x, which is saved as every input is.
struct dense {
  parameter& w;
  signature declared{"dense"};
  input<float> x = declared.in<float>("x", {any, width});
  output<float> y = declared.out<float>("y");

  explicit dense(parameter& weight) : w{weight} { declared.trains("w", w); }

  const signature& describe() const { return declared; }
  read<float> weight() const { return read<float>{elements_of<const float>(w.value)}; }

  void forward(forward_scope& run) const {
    const read<float> no_bias{view<const float>{}};
    launch(run, linear<float>, read<float>{run[x]}, weight(), no_bias,
           write<float>{run.make(y, run.shape(x))}, width, width, run.in_force().products);
  }
  void backward(backward_scope& run) const {
    const read<float> dy{run.grad(y)};
    const matrix_precision products = run.in_force().products;
    if (run.wants(x)) {
      launch(run, linear_input_grad<float>, dy, weight(), write<float>{run.grad(x)}, width, width,
             products);
    }
    // The kernel reads from the word whether it writes the gradient, adds to it, or leaves it.
    const delivery to = run.add_to(w);
    launch(run, linear_weight_grad<float>, dy, read<float>{run.saved(x)}, inout<float>{to.to},
           read<std::int32_t>{to.rule}, width, width, products);
  }
};

std::vector<float> numbers(int seed, std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>((i * 7919 + seed * 104729) % 1009) / 1009.0F - 0.5F);
  }
  return values;
}

// The weights after all windows.
std::vector<float> train(device_ref dev, const graphed_options& options) {
  const stream s{dev};
  pool memory{dev, "example"};
  byte_budget budget{std::size_t{64} << 20};
  const auto upload = [&](const std::vector<float>& from, view<float> to) {
    copy(s, read<float>{view<const float>{from.data(), from.size()}}, write<float>{to});
  };

  const buffer<float> value{memory, width * width, s};
  const buffer<float> gradient{memory, width * width, s};
  upload(numbers(1, width * width), value);
  parameter w{as_tensor(value.all(), {width, width}), {}, as_tensor(gradient.all())};
  const buffer<float> rate{memory, 3, s};  // and momentum and weight decay: none
  upload({20.0F, 0.0F, 0.0F}, rate);
  const buffer<float> third{memory, 1, s};
  fill(s, write{third}, 1.0F / micro_batches);

  graphed_op layer{dense{w}, budget, options};
  graphed_op loss{nn::squared_error{}, budget, options};
  for (int window = 0; window < windows; ++window) {
    std::vector<forward_ticket> owed;
    std::vector<tensor<float>> wrong_by;
    for (int micro = 0; micro < micro_batches; ++micro) {
      const tensor<float> x = make_tensor<float>(memory, {rows, width}, s);
      upload(numbers(window * micro_batches + micro + 2, rows * width), x.get());
      const forward_result made = layer.forward(s, {{layer.op().x, x}});
      // The matrix to be found is the one that changes nothing.
      const forward_result error =
          loss.forward(s, {{loss.op().x, made[layer.op().y]}, {loss.op().target, x}});
      const grad_result back =
          loss.backward(s, error.ticket, {gradient_of<float>(loss.op().loss, third.all())},
                        wanted::only(loss.op().x));
      owed.push_back(made.ticket);
      wrong_by.push_back(back[loss.op().x]);
    }
    for (std::size_t micro = 0; micro < owed.size(); ++micro) {
      layer.backward(s, owed[micro], {gradient_of(layer.op().y, wrong_by[micro])},
                     wanted::parameters_only());
    }
    launch(s, sgd, read{rate}, read<float>{gradient.all()}, inout<float>{view<float>{}},
           inout{value});
    w.version.bump();
    w.has_grad = false;
  }

  std::printf("%s\n  layer: %s\n  loss:  %s\n", text_of(options).c_str(),
              text_of(layer.counts()).c_str(), text_of(loss.counts()).c_str());
  std::vector<float> found(width * width);
  copy(s, read{value}, write<float>{view<float>{found.data(), found.size()}});
  s.synchronize();
  return found;
}

int train_twice(const char* device_name) {
  try {
    const device dev = open_device(device_name);
    const std::vector<float> eagerly = train(dev, {.record = false});
    // All three forwards of a window come before its backwards.
    const std::vector<float> replayed =
        train(dev, {.conflict = slots_for_accumulation(micro_batches)});
    const bool same =
        std::memcmp(eagerly.data(), replayed.data(), eagerly.size() * sizeof(float)) == 0;
    std::printf("%s, w[0][0] = %.4f, w[0][1] = %.4f: %s\n", std::string{dev.name()}.c_str(),
                replayed[0], replayed[1], same ? "the same bits" : "OTHER BITS");
    return same ? 0 : 1;
  } catch (const error& failed) {
    std::fprintf(stderr, "train_a_layer: %s\n", failed.what());
    return 1;
  }
}

}  // namespace
}  // namespace reprise

int main(int argc, char** argv) {
  return reprise::train_twice(argc > 1 ? argv[1] : "auto");
}
