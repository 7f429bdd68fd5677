// A small loop for the tests of this room, over kernels that every device has.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reprise/loop/runner.hpp"
#include "tests/replay/support.hpp"

namespace reprise::test {

// x <- rate x at each step, for x of any length. The rate differs from step to step and from
// request to request; every `leap`th step is one that is never captured.
template <bool opts_in = true>
class fading {
 public:
  static constexpr bool may_record = opts_in;

  struct request {
    request(bench& on, const std::vector<float>& values, float rate_of_it, int steps_of_it,
            int leap_of_it = 0)
        : x{on.memory, values.size(), on.work},
          rate{rate_of_it},
          steps{steps_of_it},
          leap{leap_of_it} {
      upload(on.work, values, x.all());
    }

    buffer<float> x;
    float rate;
    int steps;
    int leap;
    int done = 0;
    float rate_now = 0;
    std::array<binding, 2> with;
    interceptions intercepted;
  };

  explicit fading(stream_ref stream) : stream_{stream} {}

  std::optional<step_call> next(request& r) {
    if (r.done == r.steps) return std::nullopt;
    r.rate_now = r.rate * static_cast<float>(r.done + 1);
    r.with = {x(r.x.all()), rate.from_host({&r.rate_now, 1})};
    const bool leaps = r.leap != 0 && (r.done + 1) % r.leap == 0;
    return step_call{leaps ? &leaping : &fades, r.with};
  }

  void advance(request& r, const step_result& done) {
    copy(stream_, read<float>{done[y].get()}, write(r.x));
    ++r.done;
  }

  void fade(step_scope& run) {
    launch(run, matmul<float, float>, read(run[x]), read(run[rate]),
           write(run.make(y, run.shape(x))), 1, 1);
  }
  // y = rate (rate x): what interceptors of these tests run instead.
  void fade_twice(step_scope& run) {
    const view<float> once = run.template scratch<float>(run.shape(x));
    launch(run, matmul<float, float>, read(run[x]), read(run[rate]), write(once), 1, 1);
    run.mark({"once", 0}, as_tensor(once, run.shape(x)));
    launch(run, matmul<float, float>, read<float>{once}, read(run[rate]),
           write(run.make(y, run.shape(x))), 1, 1);
  }

  signature declared{"fading"};
  const input<float> x = declared.in<float>("x", {any, 1});
  const input<float> rate = declared.in<float>("rate", {1});
  const output<float> y = declared.out<float>("y");
  const step fades{declared, [this](step_scope& run) { fade(run); }};
  const step leaping{declared.variant("leaping"), [this](step_scope& run) { fade(run); },
                     eager_only{"draws on the host"}};
  const step twice{declared.variant("fading twice"), [this](step_scope& run) { fade_twice(run); }};

 private:
  stream_ref stream_;
};

// What the host makes of `values` in steps [0, steps), with no step replaced.
inline std::vector<float> faded(std::vector<float> values, float rate, int steps) {
  for (int i = 0; i < steps; ++i) {
    for (float& value : values) value *= rate * static_cast<float>(i + 1);
  }
  return values;
}

}  // namespace reprise::test
