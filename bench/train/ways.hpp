// The ways of one training step that `bench train` measures beside each other: eagerly, by
// recordings of layers, of the whole network, with parts for heads and loss, and as one recording.
// All train networks of their own, of the same weights, on the same batch: their bits are the same.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/grad/grad_figure.hpp"
#include "bench/train/deep_net.hpp"

namespace reprise::bench {

struct train_way {
  std::string name;
  std::function<void()> step;                   // enqueues one
  std::function<std::vector<float>()> weights;  // waits
  bool records = true;
  std::uint64_t launches = 0;  // of a step behind the first; it copies nothing, and runs no kernel
  // Of the step's one recording, when it is made; empty: it has several, or none.
  std::function<std::size_t()> nodes{};
};

inline constexpr const char* whole_way = "whole step";
inline constexpr const char* chain_way = "whole step, one chain";
inline constexpr const char* pair_way = "one pair";
inline constexpr const char* pairs_way = "a pair per layer";
inline constexpr const char* heads_way = "network, heads and loss";
inline constexpr const char* eager_way = "eager";

// The first is the eager one. The pool and the stream outlive them.
std::vector<train_way> ways_of(const deep_shape& shape, pool& memory, stream_ref stream);

}  // namespace reprise::bench
