#include "workloads/denoise/sampler.hpp"

#include <cmath>
#include <utility>

#include "reprise/kernel/launch.hpp"
#include "reprise/ops/flow.hpp"
#include "reprise/ops/philox.hpp"
#include "reprise/ops/random.hpp"

namespace reprise::denoise {

namespace {

float time_at(std::int64_t step, std::int64_t steps) {
  return static_cast<float>(step) / static_cast<float>(steps);
}

float step_length(const sampler::request& r) {
  return time_at(r.done + 1, r.asked.steps) - time_at(r.done, r.asked.steps);
}

bool takes_noise(const sampler::request& r) {
  return r.asked.stochastic && r.done + 1 < r.asked.steps;
}

// On the host, what random_normal<float> gives on a device. Stream 0 is the noise a request begins
// with, step i has stream i + 1.
std::vector<float> normal_numbers(std::uint64_t seed, std::uint64_t stream, std::size_t count) {
  const float factor = 1.0F / ops::centred_sum_deviation;
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    const ops::philox_words words = ops::philox(seed, i / 2, stream);
    const std::size_t half = 2 * (i % 2);
    numbers[i] = ops::centred_sum(words.at[half], words.at[half + 1]) * factor;
  }
  return numbers;
}

sampler::euler euler_of(const denoiser_config& config) {
  signature declared{"euler"};
  const auto x = declared.in<float>("x", {any, config.pixels()});
  const auto drift = declared.in<float>("drift", {any, config.pixels()});
  const auto dt = declared.in<float>("dt", {1});
  const auto next = declared.out<float>("next");
  const auto body = [=](step_scope& run) {
    const view<float> moved = run.make(next, run.shape(x));
    copy(run, read(run[x]), write(moved));
    launch(run, euler_step, inout(moved), read(run[drift]), read(run[dt]));
  };
  return {x, drift, dt, next, step{std::move(declared), body}};
}

sampler::stochastic stochastic_of(const denoiser_config& config, std::uint64_t seed,
                                  std::shared_ptr<const std::int64_t> drawing) {
  signature declared{"stochastic"};
  const auto x = declared.in<float>("x", {any, config.pixels()});
  const auto drift = declared.in<float>("drift", {any, config.pixels()});
  const auto dt = declared.in<float>("dt", {1});
  const auto sigma = declared.in<float>("sigma", {1});
  const auto next = declared.out<float>("next");
  const auto body = [=](step_scope& run) {
    const view<float> moved = run.make(next, run.shape(x));
    const std::vector<float> drawn =
        normal_numbers(seed, static_cast<std::uint64_t>(*drawing) + 1, moved.size());
    const view<float> noise = run.scratch<float>(run.shape(x));
    copy(run, read<float>{view<const float>{drawn.data(), drawn.size()}}, write(noise));
    copy(run, read(run[x]), write(moved));
    launch(run, sde_step, inout(moved), read(run[drift]), read(noise), read(run[dt]),
           read(run[sigma]));
  };
  return {x,     drift, dt,
          sigma, next,  step{std::move(declared), body, eager_only{"draws on the host"}}};
}

}  // namespace

sampler::sampler(stream_ref stream, const denoiser& model, step_listener listen)
    : stream_{stream},
      model_{model},
      listen_{std::move(listen)},
      evaluation_{evaluation_of(model)},
      euler_{euler_of(model.config)} {}

sampler::request sampler::begin(pool& into, image_request asked) const {
  const auto size = static_cast<std::size_t>(asked.images() * model_.config.pixels());
  request r;
  r.asked = std::move(asked);
  r.x = buffer<float>{into, size, stream_};
  r.drift = buffer<float>{into, size, stream_};
  launch(stream_, random_normal<float>, write(r.x), r.asked.seed, std::uint64_t{0}, 1.0F);
  if (r.asked.stochastic) {
    r.drawing = std::make_shared<std::int64_t>(0);
    r.shaken = stochastic_of(model_.config, r.asked.seed, r.drawing);
  }
  return r;
}

std::optional<step_call> sampler::next(request& r) {
  if (r.done == r.asked.steps) return std::nullopt;
  return r.evaluated ? go_along(r) : evaluate(r);
}

step_call sampler::evaluate(request& r) {
  const float t = time_at(r.done, r.asked.steps);
  const float eta = takes_noise(r) ? 1.0F : 0.0F;
  const float of_velocity = (1.0F + eta * t) / (1.0F - t);
  r.times.assign(r.asked.classes.size(), t);
  r.words = {r.asked.guidance, of_velocity, -of_velocity - eta};
  r.with = {evaluation_.x(r.x.all()), evaluation_.classes.from_host(r.asked.classes),
            evaluation_.times.from_host(r.times),
            evaluation_.guidance.from_host(std::span{r.words}.first(1)),
            evaluation_.factors.from_host(std::span{r.words}.subspan(1, 2))};
  return {&evaluation_.body, r.with};
}

step_call sampler::go_along(request& r) {
  const float dt = step_length(r);
  if (!takes_noise(r)) {
    r.words = {dt};
    r.with = {euler_.x(r.x.all()), euler_.drift(r.drift.all()), euler_.dt.from_host(r.words)};
    return {&euler_.body, r.with};
  }
  const float t = time_at(r.done, r.asked.steps);
  *r.drawing = r.done;
  r.words = {dt, std::sqrt(2.0F * (1.0F - t) * dt)};
  const stochastic& s = *r.shaken;
  r.with = {s.x(r.x.all()), s.drift(r.drift.all()), s.dt.from_host(std::span{r.words}.first(1)),
            s.sigma.from_host(std::span{r.words}.subspan(1, 1))};
  return {&s.body, r.with};
}

void sampler::advance(request& r, const step_result& done) {
  if (!r.evaluated) {
    copy(stream_, read<float>{done[evaluation_.drift].get()}, write(r.drift));
  } else {
    const auto next = takes_noise(r) ? r.shaken->next : euler_.next;
    copy(stream_, read<float>{done[next].get()}, write(r.x));
    ++r.done;
  }
  r.evaluated = !r.evaluated;
  if (listen_) listen_(done);
}

}  // namespace reprise::denoise
