// Somebody who captures, instantiates and launches graphs of his own, under a monitor: the works of
// tapped_model, of which a plain run says what has to be heard.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "tests/support/observe.hpp"
#include "tests/tap/support.hpp"

namespace reprise::test {

// The works of tapped_model, captured by their owner, who knows no step, cache or recording.
class their_model {
 public:
  their_model(tap_bench& on, int layers, std::int64_t rows)
      : layers_{layers}, shape_{rows, width}, memory_{on.opened, "theirs"}, on_{on} {}

  static constexpr std::int64_t width = 4;

  void works(stream_ref s, std::span<tap_window* const> windows) const {
    const auto tap = [&](const char* kind, int layer) {
      for (tap_window* const one : windows) one->tap({kind, layer}, as_tensor(h_.all(), shape_));
    };
    copy(s, read(x_), write(h_));
    for (int layer = 0; layer < layers_; ++layer) {
      tap("resid_pre", layer);
      launch(s, raise_all, inout(h_), static_cast<float>(layer + 1));
      tap("resid_post", layer);
    }
    copy(s, read(h_), write(y_));
  }
  graph captured(std::initializer_list<monitor*> eyes) const {
    return capture(on_.work, [&](stream_ref c) {
      std::vector<tap_window> open;
      std::vector<tap_window*> windows;
      open.reserve(eyes.size());
      for (monitor* const eye : eyes) {
        open.push_back(eye->open_window(c));
        windows.push_back(&open.back());
      }
      works(c, windows);
      while (!open.empty()) open.pop_back();  // the innermost first
    });
  }

  void take(stream_ref s, const std::vector<float>& values) const {
    copy(s, read<float>{view<const float>{values.data(), values.size()}}, write(x_));
  }
  std::vector<float> given(stream_ref s) const {
    std::vector<float> back(y_.size());
    copy(s, read(y_), write<float>{view<float>{back.data(), back.size()}});
    s.synchronize();
    return back;
  }

  int layers_;
  dims shape_;

 private:
  pool memory_;
  tap_bench& on_;
  buffer<float> x_{memory_, shape_.count(), on_.work};
  buffer<float> h_{memory_, shape_.count(), on_.work};
  buffer<float> y_{memory_, shape_.count(), on_.work};
};

// A model of somebody else, watched or not.
class foreign_bench : public monitored {
 protected:
  static constexpr int layers = 3;
  static constexpr std::int64_t rows = 3;
  const std::vector<request_rows> batch{{21, 0, 1, 0, 4}, {22, 1, 2, 1, 9}};

  their_model model{on, layers, rows};
  std::optional<executable> bare;  // what the model gives unwatched

  std::vector<float> next_values() const {
    return tap_bench::values(static_cast<std::size_t>(rows * their_model::width), steps);
  }
  // What this step should be heard of, by a plain run.
  void expect(const std::vector<float>& x, const point_set& watched, row_mode::kind mode,
              const std::vector<request_rows>& requests) {
    for (const auto& one : on.plainly({layers, their_model::width}, x)) {
      if (!watched.contains({one.kind, one.layer})) continue;
      for (auto& record : records_of(one, mode, steps, requests)) {
        expected.push_back(std::move(record));
      }
    }
  }
  std::vector<float> unwatched(const std::vector<float>& x) {
    if (!bare) bare.emplace(model.captured({}).instantiate(on.work));
    model.take(on.work, x);
    bare->launch(on.work);
    return model.given(on.work);
  }
  // One step of which `watched` should be heard, and whose outputs are the unwatched graph's.
  replay_id step(watched_graph& watched_by, const point_set& watched,
                 row_mode::kind mode = row_mode::kind::all,
                 const std::vector<request_rows>& requests = {}) {
    const std::vector<float> x = next_values();
    expect(x, watched, mode, requests);
    const std::vector<float> right = unwatched(x);
    model.take(on.work, x);
    const replay_id id = watched_by.launch(on.work, requests);
    EXPECT_EQ(model.given(on.work), right);
    ++steps;
    return id;
  }
  // The owner's own launch: of no step.
  void launch_past(const executable& step) {
    const std::vector<float> x = next_values();
    const std::vector<float> right = unwatched(x);
    model.take(on.work, x);
    step.launch(on.work);
    EXPECT_EQ(model.given(on.work), right);
  }
};

}  // namespace reprise::test
