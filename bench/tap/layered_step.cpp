#include "bench/tap/layered_step.hpp"

#include <cstring>

#include "bench/tap/layer.hpp"
#include "reprise/kernel/launch.hpp"

namespace reprise::bench {

layer_weights::layer_weights(pool& memory, stream_ref stream, int layers, std::size_t bytes)
    : words_{bytes / sizeof(std::int32_t)},
      all_{memory, static_cast<std::size_t>(layers) * words_, stream} {
  fill(stream, write{all_}, std::int32_t{0x01010101});
}

view<const std::int32_t> layer_weights::of(int layer) const {
  return all_.all().subview(static_cast<std::size_t>(layer) * words_, words_);
}

layered_step::layered_step(pool& memory, stream_ref stream, const layer_weights& weights,
                           const layered_shape& shape)
    : weights_{weights},
      shape_{shape},
      residual_{rows_of(shape.residual_bytes)},
      source_values_(residual_.count()),
      source_{memory, residual_.count(), stream},
      out_{declared_.out<float>("last residual")},
      what_{declared_, [this](step_scope& run) { body(run); }} {
  for (std::size_t i = 0; i < source_values_.size(); ++i) {
    source_values_[i] = static_cast<float>(i % 65'521);
  }
  copy(stream, read<float>{view<const float>{source_values_.data(), source_values_.size()}},
       write{source_});
}

// Residual i lies in turn i % buffers, but for the first one: steps begin alike.
void layered_step::body(step_scope& run) const {
  const auto turn_of = [&](int layer) { return static_cast<std::size_t>(layer % shape_.buffers); };
  std::vector<view<float>> turns(static_cast<std::size_t>(shape_.buffers));
  for (std::size_t i = 0; i < turns.size(); ++i) {
    turns[i] =
        i == turn_of(shape_.layers) ? run.make(out_, residual_) : run.scratch<float>(residual_);
  }
  for (int layer = 0; layer < shape_.layers; ++layer) {
    const view<float> in = layer == 0 ? source_.all() : turns[turn_of(layer)];
    run.mark({"resid_pre", layer}, as_tensor(in, residual_));
    launch(run, tap_layer, read<std::int32_t>{weights_.of(layer)}, read<float>{in},
           write<float>{turns[turn_of(layer + 1)]}, static_cast<float>(layer + 1));
  }
}

bool layered_step::holds(int layer, std::span<const std::byte> bytes) const {
  if (bytes.size() != source_values_.size() * sizeof(float)) return false;
  for (std::size_t i = 0; i < source_values_.size(); ++i) {
    const float expected = value(layer, i);
    if (std::memcmp(bytes.data() + i * sizeof(float), &expected, sizeof expected) != 0)
      return false;
  }
  return true;
}

marked_step layered_step::marked() const {
  marked_step made;
  made.what = &what_;
  made.points = static_cast<std::uint64_t>(shape_.layers);
  made.is_right = [this](const tap_record& one) {
    return one.kind == "resid_pre" && one.layer >= 0 && one.layer < shape_.layers &&
           one.rows == residual_[0] && holds(one.layer, one.bytes);
  };
  made.has_right_output = [this](stream_ref stream, const step_result& done) {
    const view<const float> from = done[out_].get();
    std::vector<float> host(from.size());
    copy(stream, read<float>{from}, write<float>{view<float>{host.data(), host.size()}});
    stream.synchronize();
    return holds(shape_.layers, std::as_bytes(std::span{host}));
  };
  return made;
}

}  // namespace reprise::bench
