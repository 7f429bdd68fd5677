// sdm_split and sdm_join on CUDA: a thread per element of z.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/elementwise.cuh"
#include "reprise/ops/sigmoid.hpp"
#include "reprise/sdm/projection.hpp"

namespace reprise::REPRISE_BODIES::sdm {

namespace {

// Where column c of row `row` lies among the parts.
struct place {
  enum class part { value, first, second, strength, retention } of;
  std::int64_t at;
};

__device__ place place_of(std::int64_t row, std::int64_t c, std::int64_t rows, std::int64_t width,
                          std::int64_t key_width) {
  if (c < width) return {place::part::value, row * width + c};
  const std::int64_t behind = c - width;
  const std::int64_t half = behind / key_width;  // write first, write second, read first, second
  if (half >= 4) {
    return {behind - 4 * key_width == 0 ? place::part::strength : place::part::retention, row};
  }
  const std::int64_t query = half < 2 ? row : rows + row;
  return {half % 2 == 0 ? place::part::first : place::part::second,
          query * key_width + behind % key_width};
}

struct split_element {
  read<float> z;
  write<float> v, first, second, beta, g;
  std::int64_t rows, columns, width, key_width;
  float offset;

  __device__ void operator()(std::size_t i) const {
    const auto row = static_cast<std::int64_t>(i) / columns;
    const place to = place_of(row, static_cast<std::int64_t>(i) % columns, rows, width, key_width);
    const float value = z.data()[i];
    switch (to.of) {
      case place::part::value: v.data()[to.at] = value; break;
      case place::part::first: first.data()[to.at] = value; break;
      case place::part::second: second.data()[to.at] = value; break;
      case place::part::strength: beta.data()[to.at] = ops::sigmoid_of(value).value; break;
      case place::part::retention: g.data()[to.at] = log_sigmoid(math::add(value, offset)); break;
    }
  }
};

struct join_element {
  read<float> dv, dfirst, dsecond, dbeta, dg, beta, g;
  write<float> dz;
  std::int64_t rows, columns, width, key_width;

  __device__ float value_of(const place& from) const {
    switch (from.of) {
      case place::part::value: return dv.data()[from.at];
      case place::part::first: return dfirst.data()[from.at];
      case place::part::second: return dsecond.data()[from.at];
      case place::part::strength: return dstrength(dbeta.data()[from.at], beta.data()[from.at]);
      case place::part::retention: break;
    }
    return dretention(dg.data()[from.at], g.data()[from.at]);
  }
  __device__ void operator()(std::size_t i) const {
    const auto row = static_cast<std::int64_t>(i) / columns;
    dz.data()[i] =
        value_of(place_of(row, static_cast<std::int64_t>(i) % columns, rows, width, key_width));
  }
};

}  // namespace

void split_cuda(cuda_call& call, read<float> z, write<float> v, write<float> first,
                write<float> second, write<float> beta, write<float> g, std::int64_t width,
                std::int64_t key_width, float offset) {
  const std::int64_t rows = split_rows(z.size(), v.size(), first.size(), second.size(), beta.size(),
                                       g.size(), width, key_width);
  ops::elementwise(call, z.size(),
                   split_element{z, v, first, second, beta, g, rows, projected(width, key_width),
                                 width, key_width, offset});
}

void join_cuda(cuda_call& call, read<float> dv, read<float> dfirst, read<float> dsecond,
               read<float> dbeta, read<float> dg, read<float> beta, read<float> g, write<float> dz,
               std::int64_t width, std::int64_t key_width) {
  const std::int64_t rows =
      join_rows(dv.size(), dfirst.size(), dsecond.size(), dbeta.size(), dg.size(), beta.size(),
                g.size(), dz.size(), width, key_width);
  ops::elementwise(call, dz.size(),
                   join_element{dv, dfirst, dsecond, dbeta, dg, beta, g, dz, rows,
                                projected(width, key_width), width, key_width});
}

}  // namespace reprise::REPRISE_BODIES::sdm
