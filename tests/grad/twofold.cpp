#include "tests/grad/twofold.hpp"

#include <utility>

#include "reprise/kernel/launch.hpp"
#include "scenarios/grad_kernels.hpp"

namespace reprise::test {

twofold::twofold(std::string name, parameter& w, parameter& v)
    : declared_{std::move(name)}, w_{&w}, v_{&v} {
  declared_.trains("w", w);
  declared_.trains("v", v);
}

void twofold::forward(forward_scope& run) const {
  using scenarios::product;
  const dims shape = run.shape(x);
  const view<float> square = run.save<float>("square", shape);
  const view<float> first = run.scratch<float>(shape);
  const view<float> second = run.scratch<float>(shape);
  launch(run, product, read(run[x]), read(run[x]), write(square));
  launch(run, product, read(run[x]), read(elements_of<const float>(w_->value)), write(first));
  launch(run, product, read<float>{square}, read(elements_of<const float>(v_->value)),
         write(second));
  launch(run, scenarios::sum_of, read<float>{first}, read<float>{second},
         write(run.make(y, shape)));
}

void twofold::backward(backward_scope& run) const {
  using scenarios::product;
  const dims shape = run.shape(x);
  const view<const float> square = run.saved<float>("square");
  const auto deliver = [&](const parameter& to, view<const float> by) {
    const delivery d = run.add_to(to);
    launch(run, scenarios::deliver_rows, read(run.grad(y)), read(by), read(d.rule), inout(d.to));
  };
  deliver(*w_, run.saved(x));
  deliver(*v_, square);
  if (!run.wants(x)) return;
  // dy w + 2 x dy v, the latter by adding it twice.
  const view<float> first = run.scratch<float>(shape);
  const view<float> second = run.scratch<float>(shape);
  launch(run, product, read(run.grad(y)), read(elements_of<const float>(v_->value)), write(second));
  launch(run, product, read<float>{second}, read(run.saved(x)), write(second));
  launch(run, product, read(run.grad(y)), read(elements_of<const float>(w_->value)), write(first));
  launch(run, scenarios::sum_of, read<float>{first}, read<float>{second}, write(first));
  launch(run, scenarios::sum_of, read<float>{first}, read<float>{second}, write(run.grad(x)));
}

}  // namespace reprise::test
