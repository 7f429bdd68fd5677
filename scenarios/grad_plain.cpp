#include "scenarios/grad_plain.hpp"

#include <array>

namespace reprise::scenarios::on_host {

namespace {

// Philox4x32-10, written from the paper (Salmon, Moraes, Dror and Shaw, SC 2011).
std::array<std::uint32_t, 4> random_block(std::uint64_t key, std::uint64_t counter) {
  std::uint32_t a = static_cast<std::uint32_t>(counter);
  std::uint32_t b = static_cast<std::uint32_t>(counter >> 32);
  std::uint32_t c = 0;
  std::uint32_t d = 0;
  std::uint32_t low = static_cast<std::uint32_t>(key);
  std::uint32_t high = static_cast<std::uint32_t>(key >> 32);
  for (int i = 0; i != 10; ++i) {
    const std::uint64_t p = std::uint64_t{3528531795} * a;
    const std::uint64_t q = std::uint64_t{3449720151} * c;
    a = static_cast<std::uint32_t>(q >> 32) ^ b ^ low;
    b = static_cast<std::uint32_t>(q);
    c = static_cast<std::uint32_t>(p >> 32) ^ d ^ high;
    d = static_cast<std::uint32_t>(p);
    low += 2654435769U;
    high += 3144134277U;
  }
  return {a, b, c, d};
}

// Uniform on [0, 1), of 24 bits each; the last block's rest is thrown away.
floats uniform_numbers(std::size_t count, std::uint64_t key, std::uint64_t first_block) {
  floats all;
  while (all.size() < count) {
    for (const std::uint32_t word : random_block(key, first_block)) {
      if (all.size() < count) all.push_back(static_cast<float>(word >> 8) / 16777216.0F);
    }
    ++first_block;
  }
  return all;
}

template <class F>
floats map(const floats& a, const F& f) {
  floats made;
  for (std::size_t i = 0; i < a.size(); ++i) made.push_back(f(i));
  return made;
}

}  // namespace

floats scaled(const floats& x, const floats& w, float by) {
  return map(x, [&](std::size_t i) {
    const float magnified = x[i] * by;
    return magnified * w[i % w.size()];
  });
}

floats scaled_dx(const floats& dy, const floats& w, float by) {
  return scaled(dy, w, by);
}

floats scaled_dw(const floats& dy, const floats& x, std::size_t width, float by) {
  floats dw(width, 0.0F);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float magnified = dy[i] * by;
    const float one = magnified * x[i];
    dw[i % width] += one;
  }
  return dw;
}

floats noisy(const floats& x, const draw& from) {
  const floats chance = uniform_numbers(x.size(), from.seed, from.next);
  const floats noise = uniform_numbers(x.size(), from.seed, from.next + (x.size() + 3) / 4);
  return map(x, [&](std::size_t i) {
    const float half_way = x[i] * (chance[i] < 0.5F ? 0.0F : 2.0F);
    return half_way * noise[i];
  });
}

std::uint64_t draws_of_noisy(std::size_t count) {
  return 2 * ((count + 3) / 4);
}

floats counted(const floats& x) {
  return map(x, [&](std::size_t i) { return x[i] * x[i]; });
}

floats counted_dx(const floats& dy, const floats& x) {
  return map(x, [&](std::size_t i) { return dy[i] * (x[i] + x[i]); });
}

void count_step(const floats& x, std::int32_t& steps, floats& running) {
  ++steps;
  for (std::size_t j = 0; j < running.size(); ++j) {
    const float half = running[j] / 2.0F;
    running[j] = half + x[j];
  }
}

floats rewinding(const floats& x) {
  return map(x, [&](std::size_t i) { return x[i] * x[i]; });
}

floats rewinding_dx(const floats& dy, const floats& x) {
  return map(x, [&](std::size_t i) { return dy[i] * (2.0F * x[i]); });
}

floats joined(const floats& a, const floats& b) {
  return map(a, [&](std::size_t i) { return a[i] * (b.empty() ? 3.0F : b[i]); });
}

floats joined_da(const floats& dy, const floats& b) {
  return map(dy, [&](std::size_t i) { return dy[i] * (b.empty() ? 3.0F : b[i]); });
}

floats joined_db(const floats& dy, const floats& a) {
  return map(dy, [&](std::size_t i) { return dy[i] * a[i]; });
}

std::pair<floats, floats> remembering(const floats& x) {
  return {map(x, [&](std::size_t i) { return 3.0F * x[i]; }),
          map(x, [&](std::size_t i) { return x[i] * x[i]; })};
}

floats remembering_dx(const floats& dy, const floats& dmemory, const floats& x) {
  return map(x, [&](std::size_t i) {
    const float direct = 3.0F * dy[i];
    if (dmemory.empty()) return direct;
    const float by_state = dmemory[i] * (x[i] + x[i]);
    return direct + by_state;
  });
}

void descend(floats& w, const floats& grad, float rate) {
  for (std::size_t i = 0; i < w.size(); ++i) {
    const float step = rate * grad[i];
    w[i] -= step;
  }
}

}  // namespace reprise::scenarios::on_host
