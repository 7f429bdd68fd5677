#include "workloads/memory/sampling.hpp"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <utility>

#include "reprise/device/enqueue.hpp"
#include "reprise/grad/precision.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/ops/embedding.hpp"
#include "reprise/ops/gelu.hpp"
#include "reprise/ops/layer_norm.hpp"
#include "reprise/ops/linear.hpp"
#include "reprise/ops/sample.hpp"
#include "workloads/memory/model.hpp"
#include "workloads/memory/text.hpp"

namespace reprise::memory {

sampling::sampling(stream_ref stream, nn::parameter_set& parameters, const memory_options& options,
                   bool records)
    : stream_{stream},
      set_{parameters},
      options_{options},
      memory_{stream.device(), "sample"},
      cache_{stream.device(), {.record = records}},
      step_{make_step()},
      chosen_{stream.device(), 1} {}

template <element B>
sampling::layer sampling::make_layer(const std::string& name) {
  struct in_bank {
    sdm_layer<B> layer;
    buffer<B> bank;
  };
  const sdm_layer_options sizes = layer_options(options_, 1);
  const auto one = std::make_shared<in_bank>(
      in_bank{sdm_layer<B>{set_, name, sizes},
              buffer<B>{memory_, static_cast<std::size_t>(sizes.slots() * sizes.width), stream_}});
  declared_.state(name + ".bank of the sample",
                  as_tensor(one->bank.all(), {sizes.slots(), sizes.width}));
  return {[this, one] { one->layer.begin(stream_, one->bank); },
          [one](step_scope& run, view<const float> x, view<float> y) {
            one->layer.step(run, x, one->bank, y);
          },
          [this, one] {
            std::vector<std::byte> bits(one->bank.size() * sizeof(B));
            copy(stream_, read<B>{one->bank.all()},
                 write<B>{view<B>{reinterpret_cast<B*>(bits.data()), one->bank.size()}});
            stream_.synchronize();
            return bits;
          }};
}

view<const float> sampling::values(const char* name) const {
  return elements_of<const float>(set_.at(name).value);
}

void sampling::run_head(step_scope& run, view<float> x, view<float> logits) const {
  const std::int64_t width = options_.width;
  const std::int64_t inner = head_width(options_);
  const auto products = precision_now().products;
  const view<float> normed = run.scratch<float>({1, width});
  const view<float> up = run.scratch<float>({1, inner});
  const view<float> active = run.scratch<float>({1, inner});
  launch(run, layer_norm, read<float>{x}, read<float>{values("head.norm.gain")},
         read<float>{values("head.norm.bias")}, write<float>{normed}, width, head_norm_eps);
  launch(run, linear<float>, read<float>{normed}, read<float>{values("head.up.weight")},
         read<float>{values("head.up.bias")}, write<float>{up}, inner, width, products);
  launch(run, gelu, read<float>{up}, write<float>{active});
  launch(run, linear<float>, read<float>{active}, read<float>{values("head.down.weight")},
         read<float>{values("head.down.bias")}, write<float>{logits}, vocabulary, inner, products);
}

step sampling::make_step() {
  for (std::size_t i = 0; i < set_.size(); ++i) declared_.uses(set_.name(i), set_[i]);
  for (std::int64_t i = 0; i < options_.layers; ++i) {
    layers_.push_back(options_.storage == dtype::bf16 ? make_layer<bf16>(layer_name(i))
                                                      : make_layer<float>(layer_name(i)));
  }
  return step{declared_, [this](step_scope& run) {
                const std::int64_t width = options_.width;
                view<float> x = run.scratch<float>({1, width});
                view<float> y = run.scratch<float>({1, width});
                launch(run, embedding<float, float>, read<std::int32_t>{run[byte_]},
                       read<float>{values("embedding.table")}, write<float>{x}, width);
                for (const layer& each : layers_) {
                  each.step(run, x, y);
                  std::swap(x, y);
                }
                const view<float> logits = run.scratch<float>({1, vocabulary});
                run_head(run, x, logits);
                launch(run, reprise::sample, read<float>{logits}, read<float>{run[temperature_]},
                       read<float>{run[top_p_]}, read<std::uint64_t>{run[seed_]},
                       read<std::uint64_t>{run[counter_]},
                       write<std::int32_t>{run.make(next_, {1})}, vocabulary);
              }};
}

// A draw is named by the seed and the place of the byte that is drawn.
std::int32_t sampling::next(std::int32_t byte, std::uint64_t position) {
  const std::array<std::int32_t, 1> bytes{byte};
  const std::array<float, 1> temperatures{options_.temperature};
  const std::array<float, 1> top_ps{1.0F};
  const std::array<std::uint64_t, 1> seeds{options_.seed};
  const std::array<std::uint64_t, 1> counters{position};
  const step_result done =
      cache_.run(stream_, step_,
                 {byte_.from_host(bytes), temperature_.from_host(temperatures),
                  top_p_.from_host(top_ps), seed_.from_host(seeds), counter_.from_host(counters)});
  copy(stream_, read<std::int32_t>{done[next_].get()}, write<std::int32_t>{chosen_});
  stream_.synchronize();
  return chosen_[0];
}

std::string sampling::sample(std::string_view prompt) {
  for (const layer& each : layers_) each.begin();
  std::string text{prompt};
  const std::size_t end = prompt.size() + static_cast<std::size_t>(options_.sample);
  for (std::size_t at = 0; at + 1 < end; ++at) {
    const std::int32_t chosen = next(token_of(text[at]), at + 1);
    if (at + 1 == text.size()) text += byte_of(chosen);
  }
  return text.substr(prompt.size());
}

std::vector<std::vector<std::byte>> sampling::banks() const {
  std::vector<std::vector<std::byte>> all;
  for (const layer& each : layers_) all.push_back(each.bits());
  return all;
}

}  // namespace reprise::memory
