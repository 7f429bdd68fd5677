// Captures and recordings that fail: nothing has run, nothing is kept, and all goes on (D3, D6).
#include <limits>

#include "reprise/device/gate.hpp"
#include "reprise/device/graph.hpp"
#include "scenarios/lists.hpp"
#include "scenarios/steps.hpp"

namespace reprise::scenarios {

namespace {

enum class failures_slip { none, goes_on_without_result };

// More than any device has.
constexpr std::size_t too_many = std::numeric_limits<std::size_t>::max();

template <class Error, class Call>
bool throws(Call&& call) {
  try {
    call();
  } catch (const Error&) {
    return true;
  }
  return false;
}

// Out of memory inside a capture is out of memory; the stream takes work and captures again.
template <failures_slip made>
void out_of_memory_in_a_capture(device_ref dev) {
  desk at{dev};
  const number x = at.made(at.s, 0);
  const number y{at.memory, 1, at.s};
  at.s.synchronize();
  const std::size_t used = at.memory.used();
  for (int round = 0; round < 3; ++round) {
    const auto hopeless = [&] {
      capture(at.s, [&](stream_ref c) {
        append(c, x, 9);
        const number temporary{at.memory, 64, c};
        fill(c, write{temporary}, 1);
        copy(c, read(x), write(y));
        const number huge{at.memory, too_many, c};
      });
    };
    require(throws<out_of_memory>(hopeless), "a capture that has no memory did not say so");
    require(!stream_ref{at.s}.capturing(), "the stream is still being captured");
    append(at.s, x, 1);
    require_equal(static_cast<std::int64_t>(at.memory.used()), static_cast<std::int64_t>(used),
                  "bytes of the pool in use");
  }
  {
    pool brief{dev, "brief"};
    const number whole_slab{brief, std::size_t{1} << 14, at.s};
  }
  at.s.synchronize();
  // A whole card is not to be had, and idle slabs are given back before that is said. The memory of
  // a cpu is the machine's, which is left alone.
  const std::size_t whole_card = dev.memory().total / sizeof(std::int32_t);
  require(dev.name() == "cpu" || throws<out_of_memory>([&] {
            const number huge{at.memory, whole_card, at.s};
          }),
          "a device that has no memory did not say so");
  if (made == failures_slip::goes_on_without_result) launch(at.s, add, read(y), inout(x));
  const executable step = capture(at.s, [&](stream_ref c) { append(c, x, 2); }).instantiate(at.s);
  step.launch(at.s);
  require_equal(value_of(at.s, x), 1112, "x");
}

class refusing_gate : public launch_gate {
 public:
  verdict before(executable_id&, stream_ref) override {
    return refuses ? verdict::refuse : verdict::launch;
  }
  bool refuses = false;
};

// A recording that fails in its capture, then at its first launch, then not at all: the step has
// run once each time.
void failed_recordings(device_ref dev) {
  desk at{dev};
  bool synchronizes = true;
  scaling scaled{at, 2, [&](step_scope& run, view<std::int32_t>) {
                   if (synchronizes) stream_ref{run}.synchronize();
                 }};
  refusing_gate gate;
  launch_gate* const before = dev.set_gate(&gate);
  const at_exit put_back{[&] { dev.set_gate(before); }};
  replay_cache cache{dev};
  const auto run = [&](std::int32_t value, ran how) {
    const numbers in(few, value);
    const step_result done = cache.run(at.s, *scaled.what, {scaled.x.from_host(in)});
    require(done.how == how, "a step ran in another way than planned");
  };
  run(1, ran::eager);
  synchronizes = false;
  gate.refuses = true;
  run(2, ran::eager);
  gate.refuses = false;
  run(3, ran::captured);
  run(4, ran::replayed);
  require_equal(values_of(at.s, scaled.total.all()), numbers(few, 20), "the total");
  require_counts(cache.counts(), 1, 1, 2);
  require_equal(static_cast<std::int64_t>(cache.counts().eager_reasons.at("capture failed")), 2,
                "steps that ran eagerly for a failed capture");
}

}  // namespace

std::vector<scenario> failure_scenarios() {
  return {
      {"out_of_memory_in_a_capture",
       "A capture runs out of memory, says so, and leaves nothing behind.",
       out_of_memory_in_a_capture<failures_slip::none>,
       {"capture: abandoned", "slabs: out of memory, then trimmed"},
       {{"goes_on_without_result",
         "The result of a capture that failed is read, though nothing has written it.",
         {"unwritten read"},
         out_of_memory_in_a_capture<failures_slip::goes_on_without_result>}}},
      {"failed_recordings",
       "Recordings that fail on the way run their step once, and the next call records it.",
       failed_recordings,
       {"recorder: gave up and ran eagerly", "recorder: waits for its warm-up"},
       {}},
  };
}

}  // namespace reprise::scenarios
