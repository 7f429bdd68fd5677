#include "bench/replay/contestants.hpp"

#include <array>

namespace reprise::bench {

namespace {

constexpr std::array<int, 3> fact_counts{1, 8, 32};

}  // namespace

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

  bare_chain& own = bare_.emplace_back(memory, stream_, sources_, nodes_, staged, native_stream);
  made.call = [this, &own] { own.launch(block_); };
  made.result = [&own] { return own.out(); };
}

}  // namespace reprise::bench
