#include "apps/reprise/run_figures.hpp"

#include <fmt/format.h>

namespace reprise::app {

std::optional<double> mean_us(double us, std::uint64_t count) {
  return count == 0 ? std::nullopt : std::optional{us / static_cast<double>(count)};
}

std::string shown_figure(std::optional<double> us) {
  return us ? fmt::format("{:.1f}", *us) : "-";
}

std::string megabytes(std::size_t bytes) {
  return fmt::format("{:.2f}", static_cast<double>(bytes) * 1e-6);
}

void print_steps(std::FILE* to, const step_counts& counts, std::string_view what) {
  fmt::print(to, "  {:<11} captured {}, replayed {}, eager {}", what, counts.captured,
             counts.replayed, counts.eager);
  const char* open = " (";
  for (const auto& [rule, count] : counts.eager_reasons) {
    fmt::print(to, "{}{} {}", open, rule, count);
    open = ", ";
  }
  fmt::print(to, "{}\n", counts.eager_reasons.empty() ? "" : ")");
}

}  // namespace reprise::app
