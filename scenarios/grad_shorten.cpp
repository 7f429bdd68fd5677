// Makes failing schedules short: takes away what it can, then makes plainer what is left.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "scenarios/grad_schedule.hpp"

namespace reprise::scenarios {

namespace {

class shortener {
 public:
  shortener(grad_schedule failing, const std::function<bool(const grad_schedule&)>& fails, int most)
      : best_{std::move(failing)}, fails_{fails}, left_{most} {}

  grad_schedule run() {
    bool shorter = true;
    while (shorter && left_ > 0) {
      const bool fewer = take_away_calls();
      const bool without = take_away_ops();
      const bool plainer = make_plainer();
      shorter = fewer || without || plainer;
    }
    return std::move(best_);
  }

 private:
  // Whether it fails too; then it is the best.
  bool accept(grad_schedule tried) {
    if (tried == best_ || left_ <= 0) return false;
    --left_;
    if (!fails_(tried)) return false;
    best_ = std::move(tried);
    return true;
  }

  // Runs of calls: halves first, single ones last.
  bool take_away_calls() {
    bool any = false;
    for (std::size_t length = std::max<std::size_t>(best_.calls.size() / 2, 1); length != 0;
         length /= 2) {
      std::size_t from = 0;
      while (from < best_.calls.size()) {
        grad_schedule tried = best_;
        const std::size_t to = std::min(from + length, tried.calls.size());
        tried.calls.erase(std::next(tried.calls.begin(), static_cast<std::ptrdiff_t>(from)),
                          std::next(tried.calls.begin(), static_cast<std::ptrdiff_t>(to)));
        if (accept(std::move(tried))) {
          any = true;
        } else {
          from += length;
        }
      }
    }
    return any;
  }

  // Ops, with the calls that name them; those behind it move up.
  bool take_away_ops() {
    bool any = false;
    for (std::size_t i = best_.ops.size(); i-- != 0;) {
      grad_schedule tried = best_;
      const int gone = static_cast<int>(i);
      tried.ops.erase(std::next(tried.ops.begin(), static_cast<std::ptrdiff_t>(i)));
      std::erase_if(tried.calls,
                    [&](const scheduled& call) { return names_op(call) && call.op == gone; });
      for (scheduled& call : tried.calls) {
        if (names_op(call) && call.op > gone) --call.op;
      }
      any = accept(std::move(tried)) || any;
    }
    return any;
  }

  bool make_plainer() {
    bool any = false;
    const auto try_call = [&](std::size_t i, const auto& change) {
      grad_schedule tried = best_;
      change(tried.calls[i]);
      any = accept(std::move(tried)) || any;
    };
    for (std::size_t i = 0; i < best_.calls.size(); ++i) {
      try_call(i, [](scheduled& call) {
        call = {.what = call.what, .id = call.id, .op = call.op, .rows = scheduled{}.rows};
      });
      try_call(i, [](scheduled& call) { call.rows = scheduled{}.rows; });
      try_call(i, [](scheduled& call) { call.alone = false; });
      try_call(i, [](scheduled& call) { call.on_host = false; });
      try_call(i, [](scheduled& call) { call.into = false; });
      try_call(i, [](scheduled& call) { call.suspended = false; });
      try_call(i, [](scheduled& call) { call.elsewhere = false; });
      try_call(i, [](scheduled& call) { call.inputs = call.weights = true; });
      try_call(i, [](scheduled& call) { call.by_memory = false; });
      try_call(i, [](scheduled& call) { call.in_force = {}; });
    }
    const auto try_op = [&](std::size_t i, const auto& change) {
      grad_schedule tried = best_;
      change(tried.ops[i]);
      any = accept(std::move(tried)) || any;
    };
    for (std::size_t i = 0; i < best_.ops.size(); ++i) {
      try_op(i, [](scheduled_op& op) { op.options = {}; });
      try_op(i, [](scheduled_op& op) { op.options.returned = gradients::cloned; });
      try_op(i, [](scheduled_op& op) { op.options.keys = 1; });
      try_op(i, [](scheduled_op& op) { op.work = 0; });
      try_op(i, [](scheduled_op& op) {
        if (op.kind != op_kind::rewinding) op.kind = op_kind::rewinding;
      });
    }
    return any;
  }

  static bool names_op(const scheduled& call) {
    return call.what == act::forward || call.what == act::infer || call.what == act::update;
  }

  grad_schedule best_;
  const std::function<bool(const grad_schedule&)>& fails_;
  int left_;
};

}  // namespace

grad_schedule shortened(grad_schedule failing,
                        const std::function<bool(const grad_schedule&)>& fails, int most_tries) {
  return shortener{std::move(failing), fails, most_tries}.run();
}

}  // namespace reprise::scenarios
