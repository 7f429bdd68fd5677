#include "bench/replay/chain_step.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/ops/rms_norm.hpp"

namespace reprise::bench {

chain_sources::chain_sources(pool& memory, stream_ref stream)
    : input{memory, chain_elements, stream},
      gain{memory, static_cast<std::size_t>(chain_width), stream} {
  std::vector<float> host(chain_elements);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i % 61) - 30.0F;
  copy(stream, read<float>{view<const float>{host.data(), host.size()}}, write{input});
  // Near one, so that a thousand nodes neither blow up nor vanish, and no two columns alike.
  for (std::size_t i = 0; i < gain.size(); ++i) {
    host[i] = 1.0F + 1e-3F * (static_cast<float>(i % 17) - 8.0F) / 8.0F;
  }
  copy(stream, read<float>{view<const float>{host.data(), gain.size()}}, write{gain});
}

std::vector<float> chain_output(stream_ref stream, const float* from) {
  std::vector<float> host(chain_elements);
  copy(stream, read<float>{view<const float>{from, host.size()}},
       write<float>{view<float>{host.data(), host.size()}});
  stream.synchronize();
  return host;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), chain_bytes) == 0;
}

chain_step::chain_step(const chain_sources& sources, std::int64_t nodes, int facts, bool staged,
                       int key_parts)
    : sources_{sources},
      nodes_{nodes},
      declared_{declare(facts, staged, key_parts)},
      out_{declared_.out<float>("y")},
      what_{declared_, [this](step_scope& run) { body(run); }} {}

// Three facts in four are of parameters, two each; the rest are counters. Every other key part is
// read anew at each call, as what a program may switch is.
signature chain_step::declare(int facts, bool staged, int key_parts) {
  signature declared{"chain"};
  if (staged) x_ = declared.in<float>("x", {chain_rows, chain_width});
  if (key_parts > 0) batch_ = declared.in<float>("batch", {any, 0});
  for (int i = 0; i < key_parts; ++i) {
    const std::uint64_t& part = parts_.emplace_back(i);
    if (i % 2 == 0) {
      declared.key(fmt::format("part {}", i), part);
    } else {
      declared.key(fmt::format("part {}", i), [&part] { return part; });
    }
  }
  const int parameters = facts * 3 / 4 / 2;
  for (int i = 0; i < parameters; ++i) {
    parameter& weight = weights_.emplace_back();
    weight.value = as_tensor(sources_.gain.all());
    declared.uses(fmt::format("weight {}", i), weight);
  }
  for (int i = 2 * parameters; i < facts; ++i) {
    declared.fact(fmt::format("counter {}", i), versions_.emplace_back());
  }
  return declared;
}

void chain_step::body(step_scope& run) const {
  const view<float> ping = run.scratch<float>({chain_rows, chain_width});
  const view<float> pong = run.scratch<float>({chain_rows, chain_width});
  const view<float> out = run.make(out_, {chain_rows, chain_width});
  const view<const float> from = x_ ? run[*x_] : view<const float>{sources_.input.all()};
  const read<float> gain{sources_.gain.all()};
  walk_chain(nodes_, {from.data(), ping.data(), pong.data(), out.data()},
             [&](const float* in, float* to) {
               launch(run, rms_norm<float, float>, read<float>{view<const float>{in, from.size()}},
                      gain, write<float>{view<float>{to, out.size()}}, chain_width, chain_epsilon);
             });
}

step_result chain_step::run(replay_cache& cache, stream_ref stream, std::span<const float> host,
                            std::int64_t batch) const {
  std::array<binding, 2> bound;
  std::size_t count = 0;
  if (x_) bound[count++] = x_->from_host(host);
  if (batch_) bound[count++] = (*batch_)(view<const float>{}, {batch, 0});
  return cache.run(stream, what_, std::span<const binding>{bound.data(), count});
}

void chain_step::prepare(replay_cache& cache, stream_ref stream, std::int64_t batch) const {
  std::vector<dims> shapes;
  if (x_) shapes.push_back({chain_rows, chain_width});
  if (batch_) shapes.push_back({batch, 0});
  if (const auto why_not = cache.prepare(stream, what_, std::span<const dims>{shapes})) {
    throw error{fmt::format("the chain could not be prepared: {}", why_not->text())};
  }
}

}  // namespace reprise::bench
