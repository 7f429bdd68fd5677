#include "workloads/train/denoiser/train_denoiser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "reprise/base/clock.hpp"
#include "reprise/base/dtype.hpp"
#include "reprise/base/error.hpp"
#include "reprise/formats/printable.hpp"
#include "reprise/formats/whole_file.hpp"
#include "reprise/ops/philox.hpp"
#include "reprise/ops/random.hpp"
#include "workloads/train/data.hpp"
#include "workloads/train/denoiser/network.hpp"

namespace reprise::denoise {

namespace {

constexpr float least_time_left = 0.1F;  // bounds the weight of an image at 100
constexpr std::int64_t warm_up_steps = 500;

namespace fs = std::filesystem;

train::image_set read_data(const fs::path& folder, const denoiser_config& config) {
  if (config.rows != train::image_side || config.columns != train::image_side ||
      config.classes() != train::classes) {
    throw usage_error{fmt::format(
        "denoiser: its config.json says {} x {} pixels and {} classes, and the data set has 28 x "
        "28 and 10; give a config.json that says so",
        config.rows, config.columns, config.classes())};
  }
  return train::read_images(folder, "train");
}

// Drawn from (seed, step, image) alone, so that threads change nothing.
void draw_batch(const train::image_set& data, const train_options& options,
                const denoiser_config& config, std::int64_t step, crew& with, train_batch& batch) {
  const std::int64_t pixels = config.pixels();
  batch.size = options.batch;
  const auto size = static_cast<std::size_t>(options.batch);
  batch.noisy.resize(size * static_cast<std::size_t>(pixels));
  batch.clean.resize(batch.noisy.size());
  batch.times.resize(size);
  batch.weights.resize(size);
  batch.labels.resize(size);
  constexpr std::uint64_t of_batches = std::uint64_t{1} << 62;  // apart from the weights' draws
  with.each(options.batch, [&](std::int64_t row) {
    const auto at = static_cast<std::size_t>(row);
    const std::uint64_t draw = static_cast<std::uint64_t>(step * options.batch + row);
    const ops::philox_words chosen = ops::philox(options.seed, draw, of_batches);
    const std::size_t image = chosen.at[0] % data.labels.size();
    const float t = static_cast<float>(chosen.at[1] >> 8) * 0x1p-24F;
    const bool without_class = chosen.at[2] % 10 == 0;
    batch.times[at] = t;
    const float left = std::max(1 - t, least_time_left);
    batch.weights[at] = 1 / (left * left);
    batch.labels[at] = without_class ? config.null_class() : data.labels[image];
    float* const noisy = batch.noisy.data() + row * pixels;
    float* const clean = batch.clean.data() + row * pixels;
    const std::uint8_t* const from = data.pixels.data() + static_cast<std::int64_t>(image) * pixels;
    for (std::int64_t i = 0; i < pixels; i += 2) {
      const ops::philox_words words =
          ops::philox(options.seed, static_cast<std::uint64_t>(i), of_batches + 1 + draw);
      for (int k = 0; k < 2 && i + k < pixels; ++k) {
        const float noise = ops::centred_sum(words.at[2 * k], words.at[2 * k + 1]) *
                            (1 / ops::centred_sum_deviation);
        clean[i + k] = static_cast<float>(from[i + k]) / 127.5F - 1;
        noisy[i + k] = (1 - t) * noise + t * clean[i + k];
      }
    }
  });
}

// As a file holds it: [out, in] or [out], bf16.
std::string stored(const trained& weight) {
  std::string bytes;
  for (std::int64_t o = 0; o < weight.out; ++o) {
    for (std::int64_t i = 0; i < weight.in; ++i) {
      const auto at = static_cast<std::size_t>(i * weight.out + o);
      const std::uint16_t bits = narrow<bf16>(weight.average[at]).bits;
      bytes += static_cast<char>(bits & 0xffU);
      bytes += static_cast<char>(bits >> 8);
    }
  }
  return bytes;
}

// The class table is rows already: transposed back, so that a row is a class.
trained as_rows(const trained& table) {
  trained rows = table;
  std::swap(rows.in, rows.out);
  for (std::int64_t i = 0; i < table.in; ++i) {
    for (std::int64_t o = 0; o < table.out; ++o) {
      rows.average[static_cast<std::size_t>(o * table.in + i)] =
          table.average[static_cast<std::size_t>(i * table.out + o)];
    }
  }
  return rows;
}

// As safetensors.
std::string file_of(const train_network& network) {
  nlohmann::json header = nlohmann::json::object();  // sorted by name
  std::string data;
  for (const trained& weight : network.weights()) {
    const trained& kept = weight.name == "class.weight" ? as_rows(weight) : weight;
    const std::string bytes = stored(kept);
    const auto shape = weight.vector ? nlohmann::json{kept.out} : nlohmann::json{kept.out, kept.in};
    header[weight.name] = {{"dtype", "BF16"},
                           {"shape", shape},
                           {"data_offsets", {data.size(), data.size() + bytes.size()}}};
    data += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string length;
  for (int i = 0; i < 8; ++i) length += static_cast<char>(text.size() >> (8 * i) & 0xffU);
  return length + text + data;
}

// The weights and what they are weights of: both, or what was there before.
void write_model(const fs::path& folder, const std::string& config, const std::string& weights) {
  const formats::file_bytes files[] = {
      {folder / "model.safetensors", std::as_bytes(std::span{weights})},
      {folder / "config.json", std::as_bytes(std::span{config})}};
  if (formats::write_together(files)) return;
  throw error{fmt::format("--out {}: the model cannot be written there; give another folder",
                          formats::quoted_name(folder.string()))};
}

std::string text_of(const fs::path& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

// Before the minutes that it takes, and not after them.
void make_writable(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  const fs::path probe = folder / "model.safetensors.partial";
  if (!failed && (std::ofstream{probe} << ' ').flush()) {
    fs::remove(probe, failed);
    return;
  }
  throw usage_error{fmt::format("--out {}: no folder that can be written; give another",
                                formats::quoted_name(folder.string()))};
}

// Up in a line, then down in a line to nothing. No cosine: libm's would not be everybody's.
float rate_at(std::int64_t step, const train_options& options) {
  const auto done = static_cast<float>(step + 1);
  const float up = done / static_cast<float>(warm_up_steps);
  const float down = 1 - done / static_cast<float>(options.steps + 1);
  return options.rate * std::min(up, down);
}

}  // namespace

train_report train_denoiser(const train_options& options, const train_listener& listen) {
  const denoiser_config config = read_denoiser_config(options.config);
  const std::string config_text = text_of(options.config);
  const train::image_set data = read_data(options.data, config);
  make_writable(options.out);

  crew with{options.threads};
  train_network network{config, with, options.seed};
  train_batch batch;
  train_report report;
  const double start = now_us();
  for (std::int64_t step = 0; step < options.steps; ++step) {
    draw_batch(data, options, config, step, with, batch);
    const float loss = network.loss_and_gradients(batch);
    network.update({.rate = rate_at(step, options)});
    constexpr float often = 200;
    report.loss += (loss - report.loss) / std::min(static_cast<float>(step + 1), often);
    if (listen) listen(step + 1, report.loss);
  }
  report.seconds = (now_us() - start) * 1e-6;

  const std::string file = file_of(network);
  report.bytes = file.size();
  write_model(options.out, config_text, file);
  return report;
}

}  // namespace reprise::denoise
