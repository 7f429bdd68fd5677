// Text from the model, one byte a step: the step is recorded at its first run and replayed after.
//
// A step reads a byte of one stream, moves each layer's bank on by it, and chooses the byte that
// comes next (ops/sample.hpp). The banks are the step's state and all that it remembers of what it
// has read; they begin as the trained ones. One thread; parameters outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/device/memory.hpp"
#include "reprise/nn/parameters.hpp"
#include "reprise/replay/cache.hpp"
#include "workloads/memory/options.hpp"

namespace reprise::memory {

class sampling {
 public:
  sampling(stream_ref stream, nn::parameter_set& parameters, const memory_options& options,
           bool records);
  sampling(const sampling&) = delete;
  sampling& operator=(const sampling&) = delete;

  // Begins anew and reads the prompt, of a byte at least; then as many bytes as the options say.
  std::string sample(std::string_view prompt);

  // The bits of each layer's bank as it is now.
  std::vector<std::vector<std::byte>> banks() const;
  const step_counts& counts() const { return cache_.counts(); }

 private:
  // A layer of one stream with its bank, whatever that is stored in.
  struct layer {
    std::function<void()> begin;
    std::function<void(step_scope&, view<const float>, view<float>)> step;
    std::function<std::vector<std::byte>()> bits;
  };
  template <element B>
  layer make_layer(const std::string& name);
  step make_step();
  void run_head(step_scope& run, view<float> x, view<float> logits) const;
  view<const float> values(const char* name) const;
  std::int32_t next(std::int32_t byte, std::uint64_t position);

  stream_ref stream_;
  nn::parameter_set& set_;
  const memory_options& options_;
  pool memory_;
  replay_cache cache_;
  signature declared_{"sample a byte"};
  input<std::int32_t> byte_ = declared_.in<std::int32_t>("byte", {1});
  input<float> temperature_ = declared_.in<float>("temperature", {1});
  input<float> top_p_ = declared_.in<float>("top_p", {1});
  input<std::uint64_t> seed_ = declared_.in<std::uint64_t>("seed", {1});
  input<std::uint64_t> counter_ = declared_.in<std::uint64_t>("counter", {1});
  output<std::int32_t> next_ = declared_.out<std::int32_t>("next");
  std::vector<layer> layers_;
  step step_;
  pinned<std::int32_t> chosen_;
};

}  // namespace reprise::memory
