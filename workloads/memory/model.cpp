#include "workloads/memory/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <vector>

#include "reprise/nn/gelu.hpp"
#include "reprise/nn/layer_norm.hpp"
#include "reprise/nn/linear.hpp"

namespace reprise::memory {

std::string layer_name(std::int64_t i) {
  return fmt::format("layers.{}", i);
}

nn::parameter_specs model_parameters(const memory_options& o) {
  nn::parameter_specs all{{"embedding.table", {vocabulary, o.width}, nn::uniform{1}}};
  const auto append = [&](const nn::parameter_specs& more) {
    std::ranges::copy(more, std::back_inserter(all));
  };
  for (std::int64_t i = 0; i < o.layers; ++i) {
    append(sdm_layer_parameters(layer_name(i), layer_options(o, o.batch)));
  }
  append(nn::norm_parameters("head.norm", o.width));
  append(nn::linear_parameters("head.up", head_width(o), o.width));
  append(nn::linear_parameters("head.down", vocabulary, head_width(o)));
  return all;
}

nn::network make_network(nn::parameter_set& set, byte_budget& budget, const memory_options& o,
                         const graphed_options& each) {
  nn::network net{budget, each};
  std::vector<std::function<void()>> adds;
  for (std::int64_t i = 0; i < o.layers; ++i) {
    adds.emplace_back([&, i] {
      const sdm_layer_options sizes = layer_options(o, o.batch);
      if (o.storage == dtype::bf16) {
        net.add(sdm_layer<bf16>{set, layer_name(i), sizes});
      } else {
        net.add(sdm_layer<float>{set, layer_name(i), sizes});
      }
    });
  }
  adds.emplace_back([&] {
    net.add(nn::layer_norm{set.at("head.norm.gain"), set.at("head.norm.bias"), head_norm_eps,
                           "head.norm"});
  });
  adds.emplace_back([&] {
    net.add(nn::linear{set.at("head.up.weight"), set.at("head.up.bias"), "head.up"});
  });
  adds.emplace_back([&] { net.add(nn::gelu{"head.gelu"}); });
  adds.emplace_back([&] {
    net.add(nn::linear{set.at("head.down.weight"), set.at("head.down.bias"), "head.down"});
  });

  for (std::int64_t r = 0; r < o.regions; ++r) {
    const layer_span span = span_of(o, r);
    if (o.regions > 1) net.begin_checkpoint(fmt::format("region {}", r));
    for (std::int64_t i = span.first; i < span.last; ++i) adds[static_cast<std::size_t>(i)]();
    if (o.regions > 1) net.end_checkpoint();
  }
  return net;
}

}  // namespace reprise::memory
