// What the field's cases (R1 to R24) stand on: a device with a stream, a pool and the log; values
// that are small whole numbers, so that a model on the host gives the same bits; and three steps.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reprise/cuda/device.hpp"
#include "reprise/platform/explore.hpp"
#include "reprise/replay/cache.hpp"
#include "reprise/sim/controls.hpp"
#include "reprise/sim/device.hpp"
#include "reprise/telemetry/log.hpp"
#include "tests/replay/kernels.hpp"
#include "tests/replay/support.hpp"
#include "tests/support/observe.hpp"
#include "tests/support/order.hpp"

namespace reprise::test {

using floats = std::vector<float>;

// The implementation alone, to be wrapped; a simulated GPU takes no rare ways, as counts are told.
inline std::unique_ptr<device_api> bare_device(const std::string& spec) {
  if (spec == "cpu") return sim::open_cpu(1);
  if (spec.starts_with("sim:seed=")) {
    return sim::open_adversary(
        {.seed = std::stoull(spec.substr(spec.find('=') + 1)), .takes_fault_points = false});
  }
  return open_cuda(std::stoi(spec.substr(spec.find(':') + 1)));
}

using wrapping = std::function<std::unique_ptr<device_api>(std::unique_ptr<device_api>)>;

inline device open_wrapped(const std::string& spec, const wrapping& wrap) {
  std::unique_ptr<device_api> implementation = wrap(bare_device(spec));
  auto table = resolve_kernels(replay_kernels(), implementation->traits());
  return device{std::move(implementation), std::move(table)};
}

struct case_desk {
  explicit case_desk(const std::string& spec)
      : opened{open_wrapped(spec, [this](auto bare) { return counting(std::move(bare), calls); })} {
  }
  case_desk(const std::string& spec, const wrapping& wrap) : opened{open_wrapped(spec, wrap)} {}

  buffer<float> filled(const floats& values) {
    buffer<float> made{memory, values.size(), work};
    set(made, values);
    return made;
  }
  void set(const buffer<float>& to, const floats& values) { upload(work, values, to.all()); }
  floats values_of(view<const float> from) const { return read_back<float>(work, from); }
  floats values_of(const buffer<float>& from) const { return values_of(from.all()); }

  std::shared_ptr<call_counts> calls = std::make_shared<call_counts>();
  device opened;
  stream work{opened};
  pool memory{opened, "test"};
};

class replay_case : public testing::TestWithParam<std::string> {
 protected:
  replay_case() {
    set_log_sink([this](std::string_view line) { log.emplace_back(line); });
  }
  ~replay_case() override { set_log_sink({}); }

  device_ref dev() const { return desk.opened; }
  stream_ref s() const { return desk.work; }

  std::vector<std::string> log;
  case_desk desk{GetParam()};
};

inline floats times(float a, floats values) {
  for (float& v : values) v *= a;
  return values;
}

// y = a x, whose weight is a parameter.
class weighted {
 public:
  weighted(case_desk& at, float a, input_mode mode = input_mode::staged,
           on_overwrite policy = on_overwrite::revoke, const std::string& name = "weighted")
      : declared{name},
        x{declared.in<float>("x", {any, 1}, mode)},
        y{declared.out<float>("y", policy)},
        factor{at.filled({a})} {
    weight.value = as_tensor(factor.all());
    declared.uses("factor", weight);
  }

  // Other weights in other memory, as a reload does.
  void reload(case_desk& at, float a) {
    buffer<float> loaded = at.filled({a});
    factor = std::move(loaded);
    weight.value = as_tensor(factor.all());
    weight.version.bump();
  }

  // After all declarations are made.
  const step& what() {
    if (!what_) {
      what_.emplace(declared, [this](step_scope& run) {
        ++runs;
        launch(run, matmul<float, float>, read(run[x]), read(elements_of<float>(weight.value)),
               write(run.make(y, run.shape(x))), 1, 1);
        if (more) more(run);
      });
    }
    return *what_;
  }

  signature declared;
  input<float> x;
  output<float> y;
  buffer<float> factor;
  parameter weight;
  int runs = 0;
  std::function<void(step_scope&)> more;

 private:
  std::optional<step> what_;
};

// total += x; the new total comes out.
class tally {
 public:
  tally(case_desk& at, std::size_t length, on_overwrite policy = on_overwrite::revoke)
      : total{at.filled(floats(length, 0.0F))}, sum{declared.out<float>("sum", policy)} {
    declared.state("total", as_tensor(total.all()));
  }

  const step& what() {
    if (!what_) {
      what_.emplace(declared, [this](step_scope& run) {
        if (before) before(run);
        launch(run, add_to, read(run[x]), inout(total));
        if (between) between(run);
        copy(run, read(total), write(run.make(sum, run.shape(x))));
      });
    }
    return *what_;
  }

  signature declared{"tally"};
  buffer<float> total;
  input<float> x = declared.in<float>("x", {any});
  output<float> sum;
  std::function<void(step_scope&)> before;
  std::function<void(step_scope&)> between;

 private:
  std::optional<step> what_;
};

// made = 3 x; a break doubles it; total += made, and y = made.
class interrupted {
 public:
  using work_of_break = std::function<void(stream_ref, view<float> made)>;

  explicit interrupted(case_desk& at, work_of_break in_break = doubles(),
                       const std::string& name = "interrupted")
      : declared{name}, total{at.filled({0, 0})}, in_break_{std::move(in_break)} {
    declared.state("total", as_tensor(total.all()));
  }

  static work_of_break doubles() {
    return [](stream_ref on, view<float> made) {
      launch(on, add_to, read<float>{view<const float>{made}}, inout<float>{made});
    };
  }

  step make() {
    return step{declared, [this](step_scope& run) {
                  const view<float> made = run.scratch<float>(run.shape(x));
                  launch(run, scale_here, read(run[x]), write(made), 3.0F);
                  run.eagerly("doubling", [this, made](stream_ref on) {
                    ++breaks;
                    crossing = made;
                    in_break_(on, made);
                  });
                  launch(run, add_to, read<float>{view<const float>{made}}, inout(total));
                  const view<float> out = run.make(y, run.shape(x));
                  copy(run, read<float>{view<const float>{made}}, write<float>{out});
                  written = out;
                }};
  }

  signature declared;
  const input<float> x = declared.in<float>("x", {2});
  const output<float> y = declared.out<float>("y");
  buffer<float> total;
  int breaks = 0;
  view<float> crossing;
  view<float> written;

 private:
  work_of_break in_break_;
};

#define REPRISE_ON_EACH_DEVICE(suite)                                               \
  INSTANTIATE_TEST_SUITE_P(devices, suite, testing::ValuesIn(devices_under_test()), \
                           [](const auto& of) { return test_name(of.param); })

}  // namespace reprise::test
