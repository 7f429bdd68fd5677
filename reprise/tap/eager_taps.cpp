#include "reprise/tap/eager_taps.hpp"

#include <algorithm>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/tap/launch_producer.hpp"

namespace reprise {

eager_step eager_taps::begin(replay_id replay) {
  eager_step now;
  now.requests.assign(core_->requests().begin(), core_->requests().end());
  now.replay = replay;
  now.gate = core_->gate();
  now.step = core_->begin_step();
  return now;
}

// Made once; fresh memory, which every stream may use.
void eager_taps::make_words(site at) {
  if (words_.bytes() != 0) return;
  const std::size_t words = descriptor_words + 1 + 2 * core_->options.most_runs;
  words_ = block::fresh(core_->memory, words * sizeof(std::uint64_t), core_->side);
  taken_ = block::fresh(core_->memory, sizeof(std::uint64_t), core_->side);
  fill(at,
       write<std::uint8_t>{view<std::uint8_t>{reinterpret_cast<std::uint8_t*>(taken_.data()),
                                              sizeof(std::uint64_t)}},
       std::uint8_t{0});
}

void eager_taps::publish(site at, const eager_step& now, const tapped_point& one,
                         const tensor_ref& what) {
  const asked_room asked = core_->ask({&one, 1}, now.requests);
  if (asked.is == asked_room::answer::never) return take_directly(at, now, one, what);
  if (asked.promised == nullptr) return;
  flight& promised = *asked.promised;
  const stream_ref on = at.stream;
  try {
    order_.enter(on, at.place);
    make_words(at);
    const view<std::uint64_t> words{reinterpret_cast<std::uint64_t*>(words_.data()),
                                    words_.bytes() / sizeof(std::uint64_t)};
    promised.plan.write(promised.words.first(words.size()), 1, core_->all.account(),
                        static_cast<std::uint64_t>(now.replay));
    upload_words(at, promised.words.data(), promised.plan.words(1), words);
    const view<std::uint64_t> taken{reinterpret_cast<std::uint64_t*>(taken_.data()), 1};
    launch_producer(at, *core_->ring, one, what, words, taken, 0);
    launch_publisher(at, *core_->ring, words, taken);
  } catch (...) {
    on.synchronize();
    core_->withdraw(promised);
    throw;
  }
  core_->told_plan();
  core_->launched(promised, on, now.step, now.replay);
}

void eager_taps::take_directly(site at, const eager_step& now, const tapped_point& one,
                               const tensor_ref& what) {
  core_->never_fits("an eager step", {&one, 1});  // refused, unless that is allowed
  std::vector<std::byte> bytes(what.bytes());
  copy_bytes(at, what.data, bytes.data(), bytes.size());
  std::uint64_t most = bytes.size();
  if (const std::int64_t* const count = one.rows.count()) {
    std::int64_t rows = 0;
    copy_bytes(at, reinterpret_cast<const std::byte*>(count), reinterpret_cast<std::byte*>(&rows),
               sizeof rows);
    const stream_ref on = at.stream;
    on.synchronize();
    most = static_cast<std::uint64_t>(std::clamp<std::int64_t>(rows, 0, one.source_rows)) *
           one.row_bytes;
  }
  const stream_ref on = at.stream;
  on.synchronize();
  core_->deliver_directly(one, now.requests, now.step, now.replay, std::move(bytes), most);
}

}  // namespace reprise
