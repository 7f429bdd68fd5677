// Pools: freed memory is reused in stream order, and by other streams behind what used it.
#include <optional>
#include <source_location>
#include <utility>

#include "scenarios/desk.hpp"
#include "scenarios/lists.hpp"

namespace reprise::scenarios {

namespace {

enum class pools_slip {
  none,
  freed_while_read,
  read_after_free,
  never_written,
  handed_over_unordered,
  never_given_back,
};

// A temporary per round, lent to another stream and taken back before it is freed.
template <pools_slip made>
void lending(device_ref dev) {
  desk at{dev};
  const stream other{dev};
  const number sum = at.made(at.s, 0, few);
  event lent{dev};
  event back{dev};
  view<std::int32_t> kept;
  for (std::int32_t round = 1; round <= 4; ++round) {
    const number x{at.memory, few, at.s};
    if (made != pools_slip::never_written) fill(at.s, write{x}, round);
    lent.record(at.s);
    lent.wait(other);
    launch(other, add, read(x), inout(sum));
    back.record(other);
    if (made != pools_slip::freed_while_read) back.wait(at.s);
    kept = x;
  }
  if (made == pools_slip::read_after_free) launch(at.s, add, read<std::int32_t>{kept}, inout(sum));
  order(other, at.s);
  require_equal(values_of(at.s, sum.all()), numbers(few, 10), "the sum of four temporaries");
}

// Blocks that one stream writes and another frees: `freed_on` hands them over.
template <pools_slip made>
void handing_over(device_ref dev) {
  desk at{dev};
  const stream other{dev};
  const number sum = at.made(at.s, 0, few);
  order(at.s, other);
  const number of_other = at.made(other, 0, few);
  for (std::int32_t round = 1; round <= 4; ++round) {
    block x{at.memory, few * sizeof round, at.s};
    const view<std::int32_t> elements{reinterpret_cast<std::int32_t*>(x.data()), few};
    fill(at.s, write<std::int32_t>{elements}, round);
    launch(at.s, add, read<std::int32_t>{elements}, inout(sum));
    if (made != pools_slip::handed_over_unordered) order(at.s, other);
    x.freed_on(other);
    x = {};
    // The next one of the other stream is the very same memory.
    const number next{at.memory, few, other};
    fill(other, write{next}, 10 * round);
    launch(other, add, read(next), inout(of_other));
  }
  require_equal(values_of(at.s, sum.all()), numbers(few, 10), "the sum before the hand-over");
  require_equal(values_of(other, of_other.all()), numbers(few, 100), "the sum after it");
}

// Whole slabs go to and fro between two streams: the pool puts an event between them.
template <pools_slip made>
void slabs(device_ref dev) {
  constexpr std::size_t whole_slab = std::size_t{64} << 10;
  desk at{dev};
  const stream other{dev};
  const number sum = at.made(at.s, 0, few);
  const number of_other = at.made(other, 0, few);
  for (std::int32_t round = 1; round <= 3; ++round) {
    for (const auto& [on, total] : {std::pair<stream_ref, const number&>{at.s, sum},
                                    std::pair<stream_ref, const number&>{other, of_other}}) {
      const buffer<std::int32_t> large{at.memory, whole_slab / sizeof round, on};
      const view<std::int32_t> used = large.all().subview(0, few);
      fill(on, write<std::int32_t>{used}, round);
      launch(on, add, read<std::int32_t>{used}, inout(total));
    }
  }
  // What two streams freed side by side is one piece again, behind both.
  {
    pool halves{dev, "halves"};
    {
      const number low{halves, whole_slab / 2 / sizeof(std::int32_t), at.s};
      const number high{halves, whole_slab / 2 / sizeof(std::int32_t), other};
      fill(at.s, write{low}, 1);
      fill(other, write{high}, 2);
    }
    const number both{halves, whole_slab / sizeof(std::int32_t), at.s};
    fill(at.s, write{both}, 3);
  }
  // Somebody's own pool may go while its memory is still in use.
  {
    std::optional<pool> brief{std::in_place, dev, "brief"};
    const number x{*brief, few, at.s};
    brief.reset();
    fill(at.s, write{x}, 4);
    launch(at.s, add, read(x), inout(sum));
  }
  if (made == pools_slip::never_given_back) {
    dev.api().allocate(memory_kind::pinned, 256, std::source_location::current());
  }
  require_equal(values_of(at.s, sum.all()), numbers(few, 10), "the sum of one stream");
  require_equal(values_of(other, of_other.all()), numbers(few, 6), "the sum of the other");
}

}  // namespace

std::vector<scenario> pool_scenarios() {
  return {
      {"lending",
       "Temporaries are lent to another stream and freed when they are back.",
       lending<pools_slip::none>,
       {"pool: reused at once", "pool: grows although it could reuse"},
       {{"freed_while_read",
         "A buffer is freed on its stream while another stream may still read it.",
         {"race", "use after free"},
         lending<pools_slip::freed_while_read>},
        {"read_after_free",
         "A view of a temporary is used after its owner has freed it.",
         {"use after free"},
         lending<pools_slip::read_after_free>},
        {"never_written",
         "A fresh buffer is read as if it held zeros.",
         {"unwritten read"},
         lending<pools_slip::never_written>}}},
      {"handing_over",
       "A block that one stream wrote is freed, and used anew, in the order of another.",
       handing_over<pools_slip::none>,
       {},
       {{"handed_over_unordered",
         "A block is handed to a stream that does not come after its last use.",
         {"race", "use after free"},
         handing_over<pools_slip::handed_over_unordered>}}},
      {"slabs",
       "Two streams and a pool that goes early use the same slabs in turn.",
       slabs<pools_slip::none>,
       {"pool: reused behind an event", "pool: joined neighbours", "slabs: settled late",
        "slabs: an idle one is not lent"},
       {{"never_given_back",
         "Pinned memory is taken from the seam and never given back.",
         {"leak"},
         slabs<pools_slip::never_given_back>}}},
  };
}

}  // namespace reprise::scenarios
