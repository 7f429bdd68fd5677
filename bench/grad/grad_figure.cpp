#include "bench/grad/grad_figure.hpp"

#include <fmt/format.h>

namespace reprise::bench {

seam_totals call_timer::now() const {
  seam_totals all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = counts_[static_cast<seam_call>(i)];
  return all;
}

double grad_figure::per_call(seam_call kind) const {
  if (time.us.count == 0) return 0;
  return static_cast<double>(made[static_cast<std::size_t>(kind)]) /
         static_cast<double>(time.us.count);
}

std::string grad_figure::failure() const {
  const auto is_as_planned = [&](seam_call kind, std::uint64_t of_each) {
    return made[static_cast<std::size_t>(kind)] == of_each * time.us.count;
  };
  if (is_as_planned(seam_call::launch, planned.launches) &&
      is_as_planned(seam_call::copy, planned.copies) &&
      is_as_planned(seam_call::kernel, planned.kernels)) {
    return {};
  }
  return fmt::format(
      "{}: a call launched {:g} recordings, {:g} copies and {:g} kernels, and {}, {} and {} were "
      "planned; its figure is of something else, so mend that before reading it",
      time.what, per_call(seam_call::launch), per_call(seam_call::copy),
      per_call(seam_call::kernel), planned.launches, planned.copies, planned.kernels);
}

grad_figure figure_of(std::string what, timed_calls calls, const seam_plan& planned,
                      std::string floor, const spread& floor_us, std::optional<double> limit_us) {
  return {{std::move(what), std::move(floor), spread_of(std::move(calls.us)), floor_us, limit_us},
          calls.made,
          planned};
}

}  // namespace reprise::bench
