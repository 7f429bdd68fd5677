// Trains the denoiser that ships with Reprise, on a CPU, by flow matching; the same seed gives the
// same file, byte for byte, on any number of threads:
//
//   build/release/train_denoiser models/denoiser --seed 1
//
// With data x and noise e, the path from noise to data is x_t = (1 - t) e + t x, its velocity x - e
// (Lipman, Chen, Ben-Hamu, Nickel and Le, "Flow Matching for Generative Modeling", 2022, with the
// straight path of their optimal transport). The network predicts x: a residual stream that is
// narrower than an image can hold clothes, and not noise. Since x - e = (x - x_t) / (1 - t), the
// loss on velocities is
//
//   mean over t, x and e of  |net(x_t, t, class) - x|^2 / max(1 - t, 0.1)^2,  t uniform on [0, 1)
//
// and one label in ten is replaced by "no class", for guidance (Ho and Salimans, 2022).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reprise/base/clock.hpp"
#include "reprise/base/dtype.hpp"
#include "reprise/base/error.hpp"
#include "reprise/formats/idx.hpp"
#include "reprise/ops/philox.hpp"
#include "reprise/ops/random.hpp"
#include "workloads/denoise/train_network.hpp"

namespace reprise::denoise {

namespace {

struct train_options {
  std::filesystem::path model;  // has config.json, gets model.safetensors
  std::filesystem::path data = "/usr/share/datasets/fashion-mnist";
  std::uint64_t seed = 1;
  std::int64_t steps = 30000;
  std::int64_t batch = 256;
  float rate = 1e-3F;
  int threads = 2;
};

constexpr float least_time_left = 0.1F;  // bounds the weight of an image at 100
constexpr std::int64_t warm_up_steps = 500;

struct data_set {
  idx_array images;
  idx_array labels;
  std::size_t count() const { return labels.elements.size(); }
};

data_set read_data(const std::filesystem::path& folder, const denoiser_config& config) {
  data_set data{read_idx(folder / "train-images-idx3-ubyte.gz"),
                read_idx(folder / "train-labels-idx1-ubyte.gz")};
  const auto count = static_cast<std::int64_t>(data.count());
  const std::vector<std::int64_t> expected{count, config.rows, config.columns};
  const bool known = std::ranges::all_of(
      data.labels.elements, [&](std::uint8_t label) { return label < config.classes(); });
  if (count == 0 || data.images.shape != expected || !known) {
    throw usage_error{
        fmt::format("{}: images and labels are not those of this config.json; "
                    "install dataset-fashion-mnist",
                    folder.string())};
  }
  return data;
}

// Drawn from (seed, step, image) alone, so that threads change nothing.
void draw_batch(const data_set& data, const train_options& options, const denoiser_config& config,
                std::int64_t step, crew& with, train_batch& batch) {
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
    const std::size_t image = chosen.at[0] % data.count();
    const float t = static_cast<float>(chosen.at[1] >> 8) * 0x1p-24F;
    const bool without_class = chosen.at[2] % 10 == 0;
    batch.times[at] = t;
    const float left = std::max(1 - t, least_time_left);
    batch.weights[at] = 1 / (left * left);
    batch.labels[at] = without_class ? config.null_class() : data.labels.elements[image];
    float* const noisy = batch.noisy.data() + row * pixels;
    float* const clean = batch.clean.data() + row * pixels;
    const std::uint8_t* const from =
        data.images.elements.data() + static_cast<std::int64_t>(image) * pixels;
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

void write_model(const std::filesystem::path& file, const train_network& network) {
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
  const std::filesystem::path partial = file.string() + ".partial";
  std::ofstream out{partial, std::ios::binary};
  out << length << text << data;
  out.close();
  if (!out) throw error{fmt::format("{}: the file cannot be written", partial.string())};
  std::filesystem::rename(partial, file);
}

// Up in a line, then down in a line to nothing. No cosine: libm's would not be everybody's.
float rate_at(std::int64_t step, const train_options& options) {
  const auto done = static_cast<float>(step + 1);
  const float up = done / static_cast<float>(warm_up_steps);
  const float down = 1 - done / static_cast<float>(options.steps + 1);
  return options.rate * std::min(up, down);
}

void train(const train_options& options) {
  const denoiser_config config = read_denoiser_config(options.model / "config.json");
  const data_set data = read_data(options.data, config);
  crew with{options.threads};
  train_network network{config, with, options.seed};
  train_batch batch;
  const double start = now_us();
  float shown = 0;
  for (std::int64_t step = 0; step < options.steps; ++step) {
    draw_batch(data, options, config, step, with, batch);
    shown += network.loss_and_gradients(batch);
    network.update({.rate = rate_at(step, options)});
    constexpr std::int64_t often = 200;
    if ((step + 1) % often != 0) continue;
    fmt::print(stderr, "step {} of {}, loss {:.4f}, {:.0f} s\n", step + 1, options.steps,
               shown / often, (now_us() - start) * 1e-6);
    shown = 0;
  }
  write_model(options.model / "model.safetensors", network);
}

}  // namespace

}  // namespace reprise::denoise

int main(int argc, char** argv) {
  reprise::denoise::train_options options;
  CLI::App app{"Train the denoiser; writes model.safetensors beside its config.json."};
  app.add_option("model", options.model, "folder with config.json")->required();
  app.add_option("--data", options.data, "folder with the idx files of Fashion-MNIST");
  app.add_option("--seed", options.seed, "of weights, images and noise [1]");
  app.add_option("--steps", options.steps, "of AdamW [30000]")->check(CLI::Range(1, 1 << 30));
  app.add_option("--threads", options.threads, "they change no bit [2]")->check(CLI::Range(1, 256));
  CLI11_PARSE(app, argc, argv);
  try {
    reprise::denoise::train(options);
  } catch (const std::exception& wrong) {
    fmt::print(stderr, "train_denoiser: {}\n", wrong.what());
    return 1;
  }
  return 0;
}
