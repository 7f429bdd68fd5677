#include "bench/grad/layer.hpp"

#include <fmt/format.h>

#include <utility>

#include "reprise/device/enqueue.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/ops/add.hpp"
#include "reprise/ops/gelu.hpp"
#include "reprise/ops/linear.hpp"

namespace reprise::bench {

void fill_numbers(stream_ref stream, view<float> to, int seed) {
  std::vector<float> host(to.size());
  std::uint32_t state = 2654435761U * static_cast<std::uint32_t>(seed + 1);
  for (float& one : host) {
    state = state * 1664525U + 1013904223U;
    one = static_cast<float>(state >> 8) / 8388608.0F - 1.0F;
  }
  copy(stream, read<float>{view<const float>{host.data(), host.size()}}, write<float>{to});
}

trained_weight::trained_weight(pool& memory, stream_ref stream, const layer_shape& shape, int seed)
    : value{memory, static_cast<std::size_t>(shape.in * shape.out), stream},
      gradient{memory, value.size(), stream} {
  fill_numbers(stream, value, seed);
  at.value = as_tensor(value.all(), {shape.out, shape.in});
  at.grad = as_tensor(gradient.all(), {shape.out, shape.in});
}

layer::layer(std::string name, const layer_shape& shape, parameter& weight)
    : declared_{std::move(name)}, shape_{shape}, weight_{&weight}, y{declared_.out<float>("y")} {
  for (int i = 0; i < shape.inputs; ++i) {
    x.push_back(declared_.in<float>(fmt::format("x{}", i + 1), {shape.rows, shape.in}));
  }
  declared_.trains("w", weight);
}

void layer::forward(forward_scope& run) const {
  view<const float> sum = run[x.front()];
  if (x.size() > 1) {
    const view<float> total = run.save<float>("sum", {shape_.rows, shape_.in});
    for (std::size_t i = 1; i < x.size(); ++i) {
      launch(run, add, read<float>{sum}, read<float>{run[x[i]]}, write<float>{total});
      sum = total;
    }
  }
  const dims shape{shape_.rows, shape_.out};
  const view<float> made = run.make(y, shape);
  const view<float> before = shape_.activates ? run.save<float>("before gelu", shape) : made;
  launch(run, linear<float>, read<float>{sum}, read<float>{elements_of<float>(weight_->value)},
         read<float>{view<const float>{}}, write<float>{before}, shape_.out, shape_.in,
         run.in_force().products);
  if (shape_.activates) {
    launch(run, gelu, read<float>{before}, write<float>{made});
  }
}

void layer::backward(backward_scope& run) const {
  const matrix_precision products = run.in_force().products;
  view<const float> dy = run.grad(y);
  if (shape_.activates) {
    const view<float> reached = run.scratch<float>({shape_.rows, shape_.out});
    launch(run, gelu_grad, read<float>{run.saved<float>("before gelu")}, read<float>{dy},
           write<float>{reached});
    dy = reached;
  }
  const view<const float> sum =
      x.size() > 1 ? view<const float>{run.saved<float>("sum")} : run.saved(x.front());
  const delivery d = run.add_to(*weight_);
  launch(run, linear_weight_grad<float>, read<float>{dy}, read<float>{sum}, inout<float>{d.to},
         read<std::int32_t>{d.rule}, shape_.out, shape_.in, products);
  // All inputs have the same one.
  view<const float> dx;
  for (const input<float>& one : x) {
    if (!run.wants(one)) continue;
    const view<float> to = run.grad(one);
    if (dx.size() == 0) {
      launch(run, linear_input_grad<float>, read<float>{dy},
             read<float>{elements_of<float>(weight_->value)}, write<float>{to}, shape_.out,
             shape_.in, products);
    } else {
      copy(run, read<float>{dx}, write<float>{to});
    }
    dx = to;
  }
}

}  // namespace reprise::bench
