#include "bench/grad/subject.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "reprise/device/enqueue.hpp"

namespace reprise::bench {

namespace {

// The one that does not count.
grad_counts without_times(grad_counts counts) {
  counts.stale_us = 0;
  return counts;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Output, weight gradient, gradients of the inputs.
std::vector<std::vector<float>> one_step(stream_ref stream, subject& of) {
  of.weight().at.has_grad = false;
  const forward_result made = of.forward();
  const grad_result formed = of.backward(made.ticket);
  const layer& op = of.op().op();
  std::vector<std::vector<float>> all{on_host(stream, made[op.y].get()),
                                      on_host(stream, of.weight().gradient.all())};
  for (const input<float>& x : op.x) all.push_back(on_host(stream, formed[x].get()));
  return all;
}

}  // namespace

std::vector<float> on_host(stream_ref stream, view<const float> from) {
  std::vector<float> host(from.size());
  copy(stream, read<float>{from}, write<float>{view<float>{host.data(), host.size()}});
  stream.synchronize();
  return host;
}

subject::subject(std::string name, pool& memory, stream_ref stream, byte_budget& budget,
                 const layer_shape& shape, const graphed_options& options, int seed)
    : stream_{stream},
      shape_{shape},
      weight_{memory, stream, shape, seed},
      op_{layer{std::move(name), shape, weight_.at}, budget, options},
      dy_{make_tensor<float>(memory, {shape.rows, shape.out}, stream)} {
  for (int i = 0; i < shape.inputs; ++i) {
    x_.push_back(make_tensor<float>(memory, {shape.rows, shape.in}, stream));
    fill_numbers(stream, x_.back().get(), seed + 100 * (i + 1));
    given_.emplace_back(op_.op().x[static_cast<std::size_t>(i)], x_.back());
  }
  fill_numbers(stream, dy_.get(), seed + 50);
  cotangent_ = {gradient_of(op_.op().y, dy_)};
}

std::string op_counts::failure() const {
  const std::string saw = text_of(without_times(seen));
  const std::string plan = text_of(without_times(planned));
  if (saw != plan) {
    return fmt::format(
        "{}: it answered {}, and {} was planned; its figures are of something else, so mend that "
        "before reading them",
        what, saw, plan);
  }
  if (!equal) {
    return fmt::format(
        "{}: an output or a gradient differs from that of the eager run; its figures are of other "
        "work, so report it with the command that showed it",
        what);
  }
  return {};
}

bool same_bits(stream_ref stream, subject& a, subject& b) {
  const auto of_a = one_step(stream, a);
  const auto of_b = one_step(stream, b);
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    if (!same(of_a[i], of_b[i])) return false;
  }
  return of_a.size() == of_b.size();
}

}  // namespace reprise::bench
