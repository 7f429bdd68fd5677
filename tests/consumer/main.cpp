// consumer [DEVICE]: records a step with an op of its own, replays it with other inputs, and holds
// each replay to a separate eager run, bit for bit. Exit code 1 when anything differs.
#include <reprise/kernel/launch.hpp>
#include <reprise/ops/rms_norm.hpp>
#include <reprise/platform/platform.hpp>
#include <reprise/replay/cache.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

#include "scale.hpp"

namespace {

using consumer::read;
using consumer::write;

constexpr std::int64_t width = 256;
constexpr std::int64_t rows = 4;
constexpr int runs = 8;

std::vector<float> input_of(int run) {
  std::vector<float> x(static_cast<std::size_t>(rows * width));
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>((i * 37 + static_cast<std::size_t>(run) * 101) % 251) * 0.01F - 1.0F;
  }
  return x;
}

std::vector<float> host_copy(reprise::stream_ref stream, reprise::view<const float> from) {
  std::vector<float> host(from.size());
  reprise::copy(stream, read<float>{from}, write<float>{{host.data(), host.size()}});
  stream.synchronize();
  return host;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// How many replays differed from their eager run, or were none.
int replay_and_compare(reprise::device_ref device) {
  const reprise::stream stream{device};
  reprise::pool memory{device};
  const reprise::buffer<float> gain{memory, width, stream};
  reprise::fill(stream, write<float>{gain}, 0.5F);

  reprise::signature declared{"scaled norm"};
  const auto x = declared.in<float>("x", {reprise::any, width});
  const auto y = declared.out<float>("y");
  const reprise::step scaled_norm{
      declared, [&](reprise::step_scope& run) {
        const reprise::view<float> scaled = run.scratch<float>(run.shape(x));
        reprise::launch(run, consumer::scale, read<float>{run[x]}, write<float>{scaled}, 3.0F);
        reprise::launch(run, reprise::rms_norm<float, float>, read<float>{scaled},
                        read<float>{gain}, write<float>{run.make(y, run.shape(x))}, width, 1e-5F);
      }};

  reprise::replay_cache recorded{device};
  reprise::replay_cache eager{device, {.record = false}};
  int wrong = 0;
  std::vector<float> before;
  for (int run = 0; run < runs; ++run) {
    const std::vector<float> input = input_of(run);
    const auto got = recorded.run(stream, scaled_norm, {x.from_host(input)});
    const auto expected = eager.run(stream, scaled_norm, {x.from_host(input)});
    const std::vector<float> ours = host_copy(stream, got[y].get());
    if (!same_bits(ours, host_copy(stream, expected[y].get()))) {
      std::fprintf(stderr, "consumer: run %d differs from its eager run\n", run);
      ++wrong;
    }
    if (same_bits(ours, before)) {
      std::fprintf(stderr, "consumer: run %d gave what the run before it gave\n", run);
      ++wrong;
    }
    before = ours;
  }

  const reprise::step_counts& counts = recorded.counts();
  std::printf("consumer: captured %d, replayed %d, eager %d; plain runs %d\n",
              static_cast<int>(counts.captured), static_cast<int>(counts.replayed),
              static_cast<int>(counts.eager), static_cast<int>(eager.counts().eager));
  if (counts.captured != 1 || counts.replayed != runs - 1 || counts.eager != 0 ||
      eager.counts().eager != runs) {
    std::fprintf(stderr, "consumer: expected captured 1, replayed %d, eager 0; plain runs %d\n",
                 runs - 1, runs);
    ++wrong;
  }
  return wrong;
}

// reprise_checked_bodies has compiled the body of scale once more.
bool has_checked_scale(const reprise::kernel_registry& kernels) {
  return std::ranges::any_of(kernels.rows(), [](const reprise::cell_row& row) {
    return row.id == consumer::scale.id() && row.arch == reprise::checked_arch && row.built;
  });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    reprise::kernel_registry kernels = reprise::builtin_kernels();
    consumer::add_scale(kernels);
    consumer::checked::add_scale(kernels);
    if (!has_checked_scale(kernels)) {
      std::fprintf(stderr, "consumer: scale has no checked body\n");
      return 1;
    }
    const reprise::device device = reprise::open_device(argc > 1 ? argv[1] : "auto", {}, kernels);
    std::printf("consumer: on %s\n", std::string{device.name()}.c_str());
    return replay_and_compare(device) == 0 ? 0 : 1;
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "consumer: %s\n", failed.what());
    return 1;
  }
}
