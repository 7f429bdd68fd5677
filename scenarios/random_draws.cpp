// Steps that draw random numbers: replays and eager runs go on with one sequence (rule 21).
#include "reprise/ops/random_uniform.hpp"
#include "scenarios/lists.hpp"
#include "scenarios/steps.hpp"

namespace reprise::scenarios {

namespace {

// One step that draws twice, from its own counter.
class drawing {
 public:
  static constexpr std::size_t count = 6;

  explicit drawing(philox_counter& counter) {
    declared.random(counter);
    what.emplace(declared, [this](step_scope& run) {
      const view<float> out = run.make(drawn, {2 * count});
      for (const std::size_t half : {std::size_t{0}, count}) {
        const random_base base = run.draws(uniform_draws(count));
        launch(run, random_uniform, read(base.words), write<float>{out.subview(half, count)},
               base.offset);
      }
    });
  }

  signature declared{"drawing"};
  const output<float> drawn = declared.out<float>("drawn");
  std::optional<step> what;
};

std::vector<float> floats_of(stream_ref after, view<const float> x) {
  std::vector<float> host(x.size());
  copy(after, read<float>{x}, write<float>{view<float>{host.data(), host.size()}});
  after.synchronize();
  return host;
}

// Six runs of the step; what they drew, one after the other, read only at the end.
std::vector<float> sequence(desk& at, bool record, int eager_run) {
  philox_counter counter{2026};
  drawing draws{counter};
  replay_cache cache{at.dev, {.record = record}};
  replay_cache eager{at.dev, {.record = false}};
  std::vector<buffer<float>> kept;
  for (int i = 0; i < 6; ++i) {
    const step_result done = (i == eager_run ? eager : cache).run(at.s, *draws.what, {});
    kept.push_back(done[draws.drawn].clone(at.s, at.memory));
  }
  std::vector<float> all;
  for (const buffer<float>& part : kept) {
    for (const float value : floats_of(at.s, part.all())) all.push_back(value);
  }
  if (record) require_counts(cache.counts(), 1, 4, 0);
  require_equal(static_cast<std::int64_t>(counter.next()), 6 * 2 * 2, "draws of the counter");
  return all;
}

void random_draws(device_ref dev) {
  desk at{dev};
  const std::vector<float> plain = sequence(at, false, 0);
  require(sequence(at, true, 3) == plain, "replays drew other numbers than eager runs");
  require(plain.front() != plain.back(), "the sequence stands still");
}

}  // namespace

std::vector<scenario> random_draw_scenarios() {
  return {
      {"random_draws",
       "Replays, and an eager run between them, draw what eager runs alone draw.",
       random_draws,
       {},
       {}},
  };
}

}  // namespace reprise::scenarios
