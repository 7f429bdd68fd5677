#include "bench/tap/rate_figure.hpp"

namespace reprise::bench {

std::optional<double> rate_figure::rate(const spread& of) const {
  if (of.count == 0 || of.median <= 0) return std::nullopt;
  return static_cast<double>(bytes) / of.median * 1e-3;
}

std::optional<double> rate_figure::share() const {
  const std::optional<double> own = gb_s();
  const std::optional<double> copied = floor_gb_s();
  return own && copied ? std::optional{*own / *copied} : std::nullopt;
}

std::optional<bool> rate_figure::within() const {
  const bool has_limit = least_gb_s || least_share || most_us;
  if (!has_limit || !is_judged || us.count == 0) return std::nullopt;
  return (!least_gb_s || gb_s().value_or(0) >= *least_gb_s) &&
         (!least_share || share().value_or(0) >= *least_share) &&
         (!most_us || us.median <= *most_us);
}

}  // namespace reprise::bench
