#include "apps/reprise/bench_output.hpp"

#include <fmt/format.h>

#include "apps/reprise/version.hpp"

namespace reprise::app {

nlohmann::json bench_json(std::string_view bench, std::string_view device, std::string_view model,
                          const std::string& command) {
  return {{"bench", bench},
          {"device", device},
          {"model", model},
          {"version", version},
          {"command", command}};
}

nlohmann::json bench_json(std::string_view bench, device_ref device, const std::string& command) {
  return bench_json(bench, device.name(), device.traits().model, command);
}

nlohmann::json as_json(const bench::spread& us) {
  if (us.count == 0) return nullptr;
  return {{"median", us.median}, {"p10", us.p10}, {"p90", us.p90}, {"count", us.count}};
}

nlohmann::json as_json(const bench::call_figure& figure) {
  return {{"what", figure.what},
          {"us", as_json(figure.us)},
          {"floor", figure.floor},
          {"floor_us", as_json(figure.floor_us)},
          {"adds_us", or_null(figure.adds_us())},
          {"limit_us", or_null(figure.limit_us)},
          {"within", or_null(figure.within())}};
}

std::optional<double> median(const bench::spread& us) {
  return us.count == 0 ? std::nullopt : std::optional{us.median};
}

std::string shown_us(std::optional<double> us) {
  return us ? fmt::format("{:.2f}", *us) : "-";
}

std::string shown_range(const bench::spread& us) {
  return us.count == 0 ? "-" : fmt::format("{:.2f} .. {:.2f}", us.p10, us.p90);
}

std::string verdict_of(const bench::call_figure& figure) {
  if (!figure.limit_us) return "";
  const std::optional<bool> within = figure.within();
  return fmt::format("at most {:.2f}: {}", *figure.limit_us,
                     !within ? "not known" : (*within ? "kept" : "NOT KEPT"));
}

}  // namespace reprise::app
