#include "reprise/nn/loss_scaler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/device/enqueue.hpp"

namespace reprise::nn {

namespace {

const loss_scale_options& validated(const loss_scale_options& o) {
  const bool is_ordered = o.least > 0 && o.least <= o.scale && o.scale <= o.most;
  if (!is_ordered || !std::isfinite(o.most)) {
    throw usage_error{fmt::format(
        "loss_scaler: a scale of {} between {} and {}; give finite ones over 0, in order", o.scale,
        o.least, o.most)};
  }
  if (o.interval < 1) {
    throw usage_error{
        fmt::format("loss_scaler: an interval of {} updates; give 1 at least", o.interval)};
  }
  return o;
}

}  // namespace

loss_scaler::loss_scaler(pool& memory, stream_ref stream, const loss_scale_options& options)
    : options_{validated(options)},
      now_{options.scale, 0},
      stream_{stream},
      word_{memory, 1, stream} {}

void loss_scaler::update(bool finite) {
  if (!finite) {
    now_ = {std::max(now_.scale / 2, options_.least), 0};
    return;
  }
  if (++now_.good_updates < options_.interval) return;
  const float doubled = now_.scale * 2;
  now_ = {doubled <= options_.most || REPRISE_MUTANT(loss_scale_grows_without_end) ? doubled
                                                                                   : options_.most,
          0};
}

view<const float> loss_scaler::cotangent(site at, float share) {
  if (!(at.stream == stream_)) {
    throw usage_error{
        "loss_scaler: its word is written on the stream that it was made with; give that one"};
  }
  if (at.stream.capturing()) {
    throw usage_error{
        "loss_scaler: its word changes between launches, and a capture would keep it as it is now; "
        "ask for it before"};
  }
  if (!(share > 0 && std::isfinite(share))) {
    throw usage_error{fmt::format(
        "loss_scaler: a share of {} of a window; give one over 0, such as 1 of its micro-batches",
        share)};
  }
  const float wanted = now_.scale * share;
  if (wanted != written_ && !(REPRISE_MUTANT(old_loss_scale_is_given) && written_ != 0)) {
    // By a fill, which takes its value along: no host memory is read later.
    fill(at, write<float>{word_}, wanted);
    written_ = wanted;
  }
  return word_.all();
}

void loss_scaler::restore(const loss_scale& state) {
  if (!(state.scale >= options_.least && state.scale <= options_.most)) {
    throw usage_error{fmt::format(
        "loss_scaler: a scale of {} is stored, and is between {} and {} here; give one of those",
        state.scale, options_.least, options_.most)};
  }
  if (state.good_updates < 0 || state.good_updates >= options_.interval) {
    throw usage_error{fmt::format(
        "loss_scaler: {} good updates are stored, and the scale doubles after {}; give fewer",
        state.good_updates, options_.interval)};
  }
  now_ = state;
}

}  // namespace reprise::nn
