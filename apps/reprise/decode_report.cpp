#include "apps/reprise/decode_report.hpp"

#include <fmt/format.h>

#include <optional>

#include "apps/reprise/cache_json.hpp"
#include "apps/reprise/run_figures.hpp"
#include "apps/reprise/utf8.hpp"
#include "apps/reprise/version.hpp"

namespace reprise::app {

namespace {

using decode::decode_report;

struct step_times {
  std::optional<double> eager;  // microseconds per token
  std::optional<double> replayed;
  std::optional<double> prefill;
};

// A verified run has both in one: its replays and the eager runs that they were compared with.
step_times times_of(const decode_report& report) {
  const decode::batch_times& t = report.times;
  step_times times{mean_us(t.eager_us, t.eager_tokens), mean_us(t.replayed_us, t.replayed_tokens),
                   mean_us(t.prefill_us, t.prefill_tokens)};
  if (report.verified && report.verified->steps != 0) {
    times.eager = mean_us(report.verified->eager_us, t.replayed_tokens);
    times.replayed = mean_us(report.verified->replay_us, t.replayed_tokens);
  }
  return times;
}

}  // namespace

void print_report(std::FILE* to, const decode_report& report, const decode_context& run) {
  const step_times times = times_of(report);
  fmt::print(to, "{}, {}, weights {}\n", run.device, run.model, name_of(report.weights));
  print_steps(to, report.counts);
  fmt::print(to, "  us a token  eager {}, replayed {}, prefill {}\n", shown_figure(times.eager),
             shown_figure(times.replayed), shown_figure(times.prefill));
  fmt::print(to, "  MB held     weights {}, key/value cache {}, recordings {}, eager runs {}",
             megabytes(report.bytes.weights), megabytes(report.bytes.kv_cache),
             megabytes(report.bytes.replay.recordings), megabytes(report.bytes.replay.eager));
  if (report.verified) {
    fmt::print(to, ", verification {}", megabytes(report.bytes.replay.verification));
    fmt::print(to, "\n  verified    {} of {} replays equal their eager run, bit for bit",
               report.verified->steps - report.verified->unequal, report.verified->steps);
  }
  fmt::print(to, "\n");
}

nlohmann::json report_json(const decode_report& report, const decode_context& run,
                           const call_counts& calls) {
  const step_times times = times_of(report);
  nlohmann::json requests = nlohmann::json::array();
  for (const decode::request& asked : report.requests) {
    nlohmann::json row{{"ids", asked.generated}, {"finish", decode::name_of(asked.finish)}};
    if (run.byte_tokens) {
      row["prompt"] = as_utf8(decode::token_bytes(asked.prompt));
      row["text"] = as_utf8(decode::token_bytes(asked.generated));
    } else {
      row["prompt"] = asked.prompt;
      row["text"] = nullptr;
    }
    requests.push_back(std::move(row));
  }
  nlohmann::json seam = nlohmann::json::object();
  for (std::size_t i = 0; i < seam_calls; ++i) {
    const auto call = static_cast<seam_call>(i);
    seam[std::string{name_of(call)}] = calls[call];
  }
  const cache_bytes& replay = report.bytes.replay;
  return {
      {"device", run.device},
      {"version", version},
      {"seed", run.seed},
      {"weights", name_of(report.weights)},
      {"bitwise_equal",
       report.verified ? nlohmann::json(report.verified->unequal == 0) : nlohmann::json{}},
      {"verified_steps", report.verified ? report.verified->steps : 0},
      {"steps", as_json(report.counts)},
      {"planned", as_json(report.planned)},
      {"eager_reasons", report.counts.eager_reasons},
      {"cache", as_json(report.cache)},
      {"us_per_token",
       {{"eager", or_null(times.eager)},
        {"replayed", or_null(times.replayed)},
        {"prefill", or_null(times.prefill)}}},
      {"bytes",
       {{"total", report.bytes.total()},
        {"weights", report.bytes.weights},
        {"kv_cache", report.bytes.kv_cache},
        {"recordings", replay.recordings},
        {"eager", replay.eager},
        {"verification", replay.verification}}},
      {"calls", seam},
      {"requests", requests},
      {"text", requests.empty() ? nlohmann::json{} : requests.front()["text"]},
  };
}

}  // namespace reprise::app
