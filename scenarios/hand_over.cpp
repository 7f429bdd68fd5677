// One host thread makes, another uses: that work was enqueued does not mean that it has run.
#include <array>
#include <atomic>

#include "reprise/device/host_thread.hpp"
#include "scenarios/desk.hpp"
#include "scenarios/lists.hpp"

namespace reprise::scenarios {

namespace {

enum class hand_over_slip { none, no_event, freed_by_the_maker };

template <hand_over_slip made>
void between_threads(device_ref dev) {
  constexpr std::size_t items = 6;
  desk at{dev};
  const number sum = at.made(at.s, 0);
  std::array<number, items> parts;
  std::array<event, items> ready{event{dev}, event{dev}, event{dev},
                                 event{dev}, event{dev}, event{dev}};
  std::atomic<std::size_t> published{0};
  std::atomic<bool> used{false};
  // Whoever fails lets the other one go on, so that both can be joined.
  host_thread maker{dev, [&] {
                      const at_exit published_all{[&] { published = items; }};
                      const stream own{dev};
                      for (std::size_t i = 0; i < items; ++i) {
                        parts[i] = at.made(own, static_cast<std::int32_t>(i));
                        append(own, parts[i], 1);
                        ready[i].record(own);
                        published = i + 1;
                      }
                      // The buffers are this stream's, and are freed in its order.
                      if (made != hand_over_slip::freed_by_the_maker) {
                        wait_until(dev, [&] { return used.load(); });
                      }
                      for (number& part : parts) part = {};
                      own.synchronize();
                    }};
  host_thread user{dev, [&] {
                     const at_exit used_all{[&] { used = true; }};
                     for (std::size_t i = 0; i < items; ++i) {
                       wait_until(dev, [&] { return published.load() > i; });
                       if (made != hand_over_slip::no_event) ready[i].wait(at.s);
                       if (parts[i].size() == 0) continue;  // taken away by the mistake
                       launch(at.s, add, read(parts[i]), inout(sum));
                     }
                     at.s.synchronize();
                   }};
  user.join();
  maker.join();
  require_equal(value_of(at.s, sum), 10 * 15 + 6, "the sum of what was handed over");
}

}  // namespace

std::vector<scenario> hand_over_scenarios() {
  return {
      {"between_threads",
       "A thread hands results to another by events, and frees them when they were used.",
       between_threads<hand_over_slip::none>,
       {},
       {{"no_event",
         "The user takes what was enqueued as done, since the maker said that it is ready.",
         {"race", "unwritten read"},
         between_threads<hand_over_slip::no_event>},
        {"freed_by_the_maker",
         "The maker frees its results without waiting for their user.",
         {"race", "use after free", "thrown"},
         between_threads<hand_over_slip::freed_by_the_maker>}}},
  };
}

}  // namespace reprise::scenarios
