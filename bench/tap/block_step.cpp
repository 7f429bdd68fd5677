#include "bench/tap/block_step.hpp"

#include <cstring>

#include "bench/tap/layer.hpp"
#include "reprise/kernel/launch.hpp"

namespace reprise::bench {

namespace {

constexpr std::size_t block_modulus = 65'521;
constexpr std::size_t block_out_elements = 64;

}  // namespace

block_source::block_source(pool& memory, stream_ref stream, std::size_t bytes)
    : all_{memory, bytes / sizeof(float), stream}, weights_{memory, 64, stream} {
  std::vector<float> host(all_.size());
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i % block_modulus);
  copy(stream, read<float>{view<const float>{host.data(), host.size()}}, write{all_});
  fill(stream, write{weights_}, std::int32_t{0});
  stream.synchronize();
}

view<float> block_source::part(std::size_t first, std::size_t count) const {
  return all_.all().subview(first, count);
}

bool block_source::holds(std::size_t first, std::span<const std::byte> bytes) {
  std::size_t now = first % block_modulus;
  for (std::size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
    const auto expected = static_cast<float>(now);
    if (std::memcmp(bytes.data() + i * sizeof(float), &expected, sizeof expected) != 0)
      return false;
    now = now + 1 == block_modulus ? 0 : now + 1;
  }
  return true;
}

block_step::block_step(const block_source& source, int points, std::size_t bytes, block_use use)
    : source_{source},
      points_{points},
      elements_{bytes / sizeof(float)},
      use_{use},
      out_{declared_.out<float>("y")},
      what_{declared_, [this](step_scope& run) { body(run); }} {}

void block_step::body(step_scope& run) const {
  const dims small{static_cast<std::int64_t>(block_out_elements)};
  launch(run, tap_layer, read<std::int32_t>{source_.weights_.all()},
         read<float>{source_.part(0, block_out_elements)}, write<float>{run.make(out_, small)},
         1.0F);
  const auto count = static_cast<std::size_t>(points_);
  if (use_ == block_use::copies) {
    const view<float> to = run.scratch<float>({static_cast<std::int64_t>(count * elements_)});
    for (std::size_t i = 0; i < count; ++i) {
      copy(run, read<float>{source_.part(i * elements_, elements_)},
           write<float>{to.subview(i * elements_, elements_)});
    }
    return;
  }
  const dims shape = rows_of(elements_ * sizeof(float));
  for (int i = 0; i < points_; ++i) {
    const std::size_t first = static_cast<std::size_t>(i) * elements_;
    run.mark({"block", i}, as_tensor(source_.part(first, elements_), shape));
  }
}

marked_step block_step::marked() const {
  marked_step made;
  made.what = &what_;
  made.points = use_ == block_use::marks ? static_cast<std::uint64_t>(points_) : 0;
  made.is_right = [this](const tap_record& one) {
    return one.kind == "block" && one.layer >= 0 && one.layer < points_ &&
           one.bytes.size() == elements_ * sizeof(float) &&
           block_source::holds(static_cast<std::size_t>(one.layer) * elements_, one.bytes);
  };
  made.has_right_output = [this](stream_ref stream, const step_result& done) {
    std::vector<float> host(block_out_elements);
    copy(stream, read<float>{done[out_].get()},
         write<float>{view<float>{host.data(), host.size()}});
    stream.synchronize();
    return block_source::holds(1, std::as_bytes(std::span{host}));
  };
  return made;
}

}  // namespace reprise::bench
