#include "bench/replay/contestants.hpp"

#include <algorithm>
#include <array>

namespace reprise::bench {

namespace {

constexpr std::array<int, 3> fact_counts{1, 8, 32};

}  // namespace

void host_block::fill(std::size_t round) {
  for (std::size_t i = 0; i < pageable.size(); ++i) {
    pageable[i] = static_cast<float>((i * 7 + round * 13) % 101) - 50.0F;
  }
  std::ranges::copy(pageable, pinned_copy.data());
}

contestants::contestants(pool& memory, stream_ref stream, const host_block& block,
                         std::int64_t nodes, void* native_stream)
    : stream_{stream}, block_{block}, nodes_{nodes}, sources_{memory, stream} {
  for (const bool staged : {false, true}) {
    add_cached(contest::eager, 1, staged);
    add_bare(memory, staged, native_stream);
    for (const int facts : fact_counts) add_cached(contest::replay, facts, staged);
  }
}

void contestants::add_cached(contest how, int facts, bool staged) {
  cached& own =
      cached_.emplace_back(sources_, nodes_, facts, staged, stream_, how == contest::replay);
  contestant& made = all_.emplace_back();
  made.row.nodes = nodes_;
  made.row.how = how;
  made.row.facts = how == contest::replay ? static_cast<int>(own.chain.facts()) : 0;
  made.row.staged = staged;
  made.call = [this, &own] { own.last = own.chain.run(own.cache, stream_, block_.pageable); };
  made.result = [&own] { return (*own.last)[own.chain.out()].get().data(); };
  made.counts = [&own] { return own.cache.counts(); };
}

void contestants::add_bare(pool& memory, bool staged, void* native_stream) {
  contestant& made = all_.emplace_back();
  made.row.nodes = nodes_;
  made.row.how = contest::bare;
  made.row.staged = staged;
  made.row.measured = native_stream != nullptr;
  if (native_stream == nullptr) return;

  bare& own = bare_.emplace_back(memory, stream_, staged ? nullptr : sources_.input.all().data());
  float* const between = own.between.all().data();
  own.chain = std::make_unique<raw_chain>(
      native_stream,
      chain_memory{own.source, between, between + chain_elements, own.out.all().data()},
      sources_.gain.all().data(), nodes_);
  if (staged) {
    made.call = [this, &own] {
      own.chain->copy_and_launch(block_.pinned_copy.data(), own.input.all().data());
    };
  } else {
    made.call = [&own] { own.chain->launch(); };
  }
  made.result = [&own] { return static_cast<const float*>(own.out.all().data()); };
}

}  // namespace reprise::bench
