#include "scenarios/grad_ops.hpp"

#include <utility>

#include "reprise/kernel/launch.hpp"
#include "reprise/ops/random_uniform.hpp"
#include "scenarios/grad_kernels.hpp"

namespace reprise::scenarios {

namespace {

signature of_work(std::string name, const std::string& work) {
  signature declared{std::move(name)};
  if (!work.empty()) declared.same_work_as(work);
  return declared;
}

// x, by way of scratch of so many times its size.
view<const float> through_scratch(forward_scope& run, view<const float> x, std::int64_t times) {
  const auto count = static_cast<std::int64_t>(x.size());
  const view<std::int32_t> stowed_away = run.scratch<std::int32_t>({times * count});
  const view<float> back = run.scratch<float>({count});
  launch(run, stow, read<float>{x}, write(stowed_away));
  launch(run, unstow, read<std::int32_t>{stowed_away}, write(back));
  return back;
}

// The two factors of `noisy`, in the order in which both bodies draw them.
template <class Scope>
std::pair<view<float>, view<float>> drawn_factors(Scope& run, const dims& shape) {
  const view<float> uniform = run.template scratch<float>(shape);
  const view<float> kept = run.template scratch<float>(shape);
  const view<float> noise = run.template scratch<float>(shape);
  const random_base first = run.draws(uniform_draws(shape.count()));
  launch(run, random_uniform, read(first.words), write(uniform), first.offset);
  launch(run, keep_half, read<float>{uniform}, write(kept));
  const random_base second = run.draws(uniform_draws(shape.count()));
  launch(run, random_uniform, read(second.words), write(noise), second.offset);
  return {kept, noise};
}

// y = x m v, from left to right.
template <class Scope>
void times_both(Scope& run, view<const float> x, const dims& shape, view<float> y) {
  const auto [kept, noise] = drawn_factors(run, shape);
  const view<float> half_way = run.template scratch<float>(shape);
  launch(run, product, read<float>{x}, read<float>{kept}, write(half_way));
  launch(run, product, read<float>{half_way}, read<float>{noise}, write(y));
}

// y = by x.
template <class Scope>
void times_constant(Scope& run, view<const float> x, float by, view<float> y) {
  const view<float> constant = run.template scratch<float>({1});
  fill(run, write<float>{constant}, by);
  launch(run, product, read<float>{x}, read<float>{constant}, write(y));
}

}  // namespace

float magnification(const precision& in_force) {
  const float by_casts = in_force.casts == cast_mode::bf16 ? 2.0F : 1.0F;
  return in_force.products == matrix_precision::tf32 ? 4.0F * by_casts : by_casts;
}

scaled::scaled(std::string name, parameter& w) : declared_{std::move(name)}, w_{&w} {
  declared_.trains("w", w);
}

void scaled::forward(forward_scope& run) const {
  const view<const float> from = through_scratch(run, run[x], 3);
  const view<float> magnified = run.scratch<float>(run.shape(x));
  times_constant(run, from, magnification(run.in_force()), magnified);
  launch(run, product, read<float>{magnified}, read(elements_of<const float>(w_->value)),
         write(run.make(y, run.shape(x))));
}

void scaled::backward(backward_scope& run) const {
  const view<float> magnified = run.scratch<float>(run.shape(x));
  times_constant(run, run.grad(y), magnification(run.in_force()), magnified);
  if (run.wants(x)) {
    launch(run, product, read<float>{magnified}, read(elements_of<const float>(w_->value)),
           write(run.grad(x)));
  }
  const delivery d = run.add_to(*w_);
  launch(run, deliver_rows, read<float>{magnified}, read(run.saved(x)), read(d.rule), inout(d.to));
}

noisy::noisy(std::string name, philox_counter& counter, const std::string& work)
    : declared_{of_work(std::move(name), work)} {
  declared_.random(counter);
}

void noisy::forward(forward_scope& run) const {
  const view<const float> from = through_scratch(run, run[x], 2);
  times_both(run, from, run.shape(x), run.make(y, run.shape(x)));
}

void noisy::backward(backward_scope& run) const {
  if (!run.wants(x)) return;
  times_both(run, run.grad(y), run.shape(x), run.grad(x));
}

counted::counted(std::string name, const buffer<std::int32_t>& steps, const buffer<float>& running)
    : declared_{std::move(name)}, steps_{steps.all()}, running_{running.all()} {
  declared_.state("steps", as_tensor(steps_));
  declared_.state("running", as_tensor(running_));
}

void counted::forward(forward_scope& run) const {
  const view<const float> from = through_scratch(run, run[x], 5);
  launch(run, count_step, read<float>{from}, inout(steps_), inout(running_));
  launch(run, product, read<float>{from}, read<float>{from}, write(run.make(y, run.shape(x))));
  const view<float> slope = run.save<float>("slope", run.shape(x));
  launch(run, sum_of, read<float>{from}, read<float>{from}, write(slope));
}

void counted::backward(backward_scope& run) const {
  if (!run.wants(x)) return;
  launch(run, product, read(run.grad(y)), read<float>{run.saved<float>("slope")},
         write(run.grad(x)));
}

rewinding::rewinding(std::string name, const std::string& work)
    : declared_{of_work(std::move(name), work)} {}

void rewinding::forward(forward_scope& run) const {
  const view<const float> from = through_scratch(run, run[x], 4);
  const view<float> bank = run.save<float>("bank", run.shape(x));
  launch(run, sum_of, read<float>{from}, read<float>{from}, write(bank));
  launch(run, scale, inout(bank), 2.0F);
  launch(run, product, read<float>{from}, read<float>{from}, write(run.make(y, run.shape(x))));
}

void rewinding::backward(backward_scope& run) const {
  const view<float> bank = run.saved<float>("bank");
  launch(run, scale, inout(bank), 0.5F);
  if (run.wants(x)) {
    launch(run, product, read(run.grad(y)), read<float>{bank}, write(run.grad(x)));
  }
  launch(run, scale, inout(bank), 0.5F);
}

joined::joined(std::string name, const std::string& work)
    : declared_{of_work(std::move(name), work)} {}

void joined::forward(forward_scope& run) const {
  const view<float> out = run.make(y, run.shape(a));
  if (!run.given(b)) {
    times_constant(run, through_scratch(run, run[a], 2), 3.0F, out);
    return;
  }
  launch(run, product, read(run[a]), read<float>{through_scratch(run, run[b], 3)}, write(out));
}

void joined::backward(backward_scope& run) const {
  if (run.wants(a)) {
    if (run.given(b)) {
      launch(run, product, read(run.grad(y)), read(run.saved(b)), write(run.grad(a)));
    } else {
      times_constant(run, run.grad(y), 3.0F, run.grad(a));
    }
  }
  if (run.given(b) && run.wants(b)) {
    launch(run, product, read(run.grad(y)), read(run.saved(a)), write(run.grad(b)));
  }
}

remembering::remembering(std::string name, const std::string& work)
    : declared_{of_work(std::move(name), work)} {}

void remembering::forward(forward_scope& run) const {
  const view<const float> from = through_scratch(run, run[x], 3);
  times_constant(run, from, 3.0F, run.make(y, run.shape(x)));
  launch(run, product, read<float>{from}, read<float>{from}, write(run.make(memory, run.shape(x))));
}

void remembering::backward(backward_scope& run) const {
  if (!run.wants(x)) return;
  const view<float> dx = run.grad(x);
  if (!run.has_grad(memory)) {
    times_constant(run, run.grad(y), 3.0F, dx);
    return;
  }
  // 3 dy + dmemory (x + x).
  const view<float> first = run.scratch<float>(run.shape(x));
  const view<float> twice = run.scratch<float>(run.shape(x));
  times_constant(run, run.grad(y), 3.0F, first);
  launch(run, sum_of, read(run.saved(x)), read(run.saved(x)), write(twice));
  launch(run, product, read(run.grad(memory)), read<float>{twice}, write(twice));
  launch(run, sum_of, read<float>{first}, read<float>{twice}, write(dx));
}

}  // namespace reprise::scenarios
