#include "workloads/train/options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/formats/printable.hpp"

namespace reprise::train {

namespace {

void need(std::string_view option, std::int64_t is, std::int64_t least, std::int64_t most,
          std::string_view why = "") {
  if (is >= least && is <= most) return;
  throw usage_error{
      fmt::format("{} {}: give a whole number from {} to {}{}", option, is, least, most, why)};
}

// Whatever is no number is outside of all bounds.
void need(bool is_fine, std::string_view option, float is, std::string_view remedy) {
  if (is_fine) return;
  throw usage_error{fmt::format("{} {}: give {}", option, is, remedy)};
}

}  // namespace

graphed_parts parts_from(std::string_view text) {
  graphed_parts parts{false, false, false};
  if (text == "none") return parts;
  for (std::size_t at = 0;;) {
    const std::size_t comma = text.find(',', at);
    const std::string_view word = text.substr(at, comma - at);
    if (word == "network") {
      parts.network = true;
    } else if (word == "heads") {
      parts.heads = true;
    } else if (word == "loss") {
      parts.loss = true;
    } else {
      throw usage_error{fmt::format(
          "--graphed: {} is no part; give some of network, heads and loss with commas between "
          "them, or none",
          formats::quoted_name(word))};
    }
    if (comma == std::string_view::npos) return parts;
    at = comma + 1;
  }
}

std::string text_of(const graphed_parts& parts) {
  std::vector<std::string_view> words;
  if (parts.network) words.emplace_back("network");
  if (parts.heads) words.emplace_back("heads");
  if (parts.loss) words.emplace_back("loss");
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, ","));
}

scaling scaling_from(std::string_view text) {
  if (text == "dynamic") return {};
  float scale = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), scale);
  if (failed != std::errc{} || end != text.data() + text.size()) {
    throw usage_error{fmt::format("--loss-scale {}: give dynamic, or a number such as 1024",
                                  formats::quoted_name(text))};
  }
  return {false, scale};
}

std::string text_of(const scaling& scale) {
  return scale.dynamic ? "dynamic" : fmt::format("{}", scale.scale);
}

void check(const train_options& o) {
  need("--epochs", o.epochs, 1, 10000);
  need("--batch", o.batch, 2, 4096, "; batch norm needs two images at least");
  need("--accumulate", o.accumulate, 1, 4096);
  if (o.subset != 0) {
    need("--subset", o.subset, 2, 60000, ", or 0 for all; batch norm needs two at least");
  }
  need("--unlabelled-every", o.unlabelled_every, 0, std::int64_t{1} << 20);
  if (o.unlabelled_every == 1) {
    throw usage_error{
        "--unlabelled-every 1: no image would have a label; give 2 or more, or 0 for all labels"};
  }
  need("--hidden", o.hidden, 1, 8192);
  need("--width", o.width, 1, 8192);
  need("--mask-hidden", o.mask_hidden, 1, 8192);
  need(o.dropout >= 0 && o.dropout < 1, "--dropout", o.dropout, "a rate from 0 to less than 1");
  need(o.mask_weight >= 0 && o.mask_weight <= 1000, "--mask-weight", o.mask_weight,
       "a weight from 0 to 1000");
  need(o.learning_rate > 0 && o.learning_rate <= 1, "--learning-rate", o.learning_rate,
       "a number above 0 and at most 1, such as 0.002");
  need(o.clip >= 0 && std::isfinite(o.clip), "--clip", o.clip,
       "the largest norm of all gradients, such as 1, or 0 for any");
  need(o.ema >= 0 && o.ema < 1, "--ema", o.ema,
       "a decay from 0 (the weights themselves) to less than 1");
  need(o.scale.scale > 0 && std::isfinite(o.scale.scale), "--loss-scale", o.scale.scale,
       "dynamic, or a number above 0, such as 1024");
  if (o.verify && !o.graphed.any()) {
    throw usage_error{"--verify compares with the run that --graphed none makes; leave one out"};
  }
}

}  // namespace reprise::train
