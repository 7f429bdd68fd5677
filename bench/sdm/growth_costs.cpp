#include "bench/sdm/growth_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <memory>

#include "bench/sdm/called_op.hpp"
#include "bench/sdm/parts.hpp"
#include "bench/sdm/sdm_call.hpp"

namespace reprise::bench {

namespace {

// An op of so many slots with its bank; made where it stays.
class of_slots {
 public:
  of_slots(const sdm_tools& with, const sdm_sizes& sizes)
      : sizes_{sizes},
        bank_{with.memory, with.stream, sizes.slots, sizes.width},
        call_{with.memory, with.stream, sizes, 2},
        replayed_{with.stream, to_call(), with.budget, true},
        passes_{with.memory, with.stream, sizes, bank_.at} {
    called_op eager{with.stream, to_call(), with.budget, false};
    equal_ = eager.run_and_look() == see_replay();
    passes_.forward.check();
    passes_.backward.check();
    eager_ = eager.counts();
  }

  void time() {
    both_.push_back(replayed_.time_both());
    initial_.push_back(passes_.forward.time());
    cotangent_.push_back(passes_.backward.time());
  }

  void begin() {
    both_.clear();
    initial_.clear();
    cotangent_.clear();
  }

  void report(growth_costs& into) const {
    into.rows.push_back({sizes_.slots, spread_of(both_),
                         spread_of(initial_).median + spread_of(cotangent_).median,
                         sizes_.streams * sizes_.tokens});
    for (op_counts counts : {replayed_.counts(), eager_}) {
      counts.equal = equal_;
      into.ops.push_back(std::move(counts));
    }
    for (const repeated_step* const one : {&passes_.forward, &passes_.backward}) {
      into.steps.push_back(one->counts());
      into.steps.back().what = fmt::format("{}, {}", name(), into.steps.back().what);
    }
  }

 private:
  std::string name() const { return fmt::format("growth, {} slots", sizes_.slots); }

  op_to_call to_call() {
    const sparse_delta_memory<bf16> op{{.sizes = sizes_}, bank_.at};
    return {name(),
            erase(std::make_shared<const sparse_delta_memory<bf16>>(op)),
            call_.operands_for(op),
            gradient_of(op.readings, view<const float>{call_.dy.all()}),
            {&bank_.at}};
  }

  // The first pair is captured.
  std::uint64_t see_replay() {
    replayed_.run();
    return replayed_.run_and_look();
  }

  sdm_sizes sizes_;
  sdm_bank bank_;
  sdm_call call_;
  called_op replayed_;
  bank_passes passes_;
  op_counts eager_;
  bool equal_ = false;
  std::vector<double> both_;
  std::vector<double> initial_;
  std::vector<double> cotangent_;
};

}  // namespace

double growth_costs::percent(const growth_row& row) const {
  return 100 * (row.us_per_token() / rows.front().us_per_token() - 1);
}

std::optional<bool> growth_costs::within() const {
  if (!is_judged || rows.empty()) return std::nullopt;
  return std::ranges::all_of(
      rows, [this](const growth_row& row) { return percent(row) <= growth_limit_percent; });
}

growth_costs measure_growth(const sdm_tools& with, const sdm_growth_shape& shape) {
  growth_costs costs;
  costs.shape = shape;
  costs.is_judged = with.gpu;
  std::list<of_slots> all;
  std::vector<std::function<void()>> turns;
  for (std::size_t i = 0; i < shape.slots.size(); ++i) {
    with.tell("growth, banks", i, shape.slots.size());
    of_slots& one = all.emplace_back(with, sdm_sizes{.slots = shape.slots[i],
                                                     .width = shape.width,
                                                     .tokens = shape.tokens,
                                                     .writes = shape.writes,
                                                     .reads = shape.reads,
                                                     .chunk = shape.chunk});
    turns.emplace_back([&one] { one.time(); });
  }
  in_rounds(with, "growth", turns, [&] {
    for (of_slots& one : all) one.begin();
  });
  for (const of_slots& one : all) one.report(costs);
  with.stream.synchronize();
  return costs;
}

}  // namespace reprise::bench
