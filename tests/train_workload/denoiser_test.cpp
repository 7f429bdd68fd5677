// The denoiser is made again from its seed: the same bytes today as ever, whatever the threads, and
// what it writes is a model of the workload `denoise`.
#include "workloads/train/denoiser/train_denoiser.hpp"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "reprise/platform/platform.hpp"
#include "tests/support/observe.hpp"
#include "tests/train_workload/support.hpp"
#include "workloads/denoise/denoiser_weights.hpp"

namespace reprise {
namespace {

using denoise::train_denoiser;
using denoise::train_options;
using denoise::train_report;

std::string contents(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

// FNV-1a (Fowler, Noll and Vo) of 64 bits.
std::uint64_t digest_of(const std::string& bytes) {
  std::uint64_t digest = 0xcbf29ce484222325U;
  for (const char byte : bytes) {
    digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  }
  return digest;
}

class training_the_denoiser : public ::testing::Test {
 protected:
  train_options asked(const std::string& out) const {
    train_options o;
    o.config = test::shipped_denoiser() / "config.json";
    o.out = folder.path() / out;
    o.data = test::clothes();
    o.steps = 3;
    o.threads = 1;
    return o;
  }
  // A tenth of the work.
  train_options brief(const std::string& out) const {
    train_options o = asked(out);
    o.batch = 16;
    return o;
  }
  std::string model_of(const train_options& options) const {
    train_denoiser(options);
    return contents(options.out / "model.safetensors");
  }

  test::scratch folder;
};

// The program that made the shipped model wrote these bytes after three steps on these images.
TEST_F(training_the_denoiser, writes_the_bytes_that_it_always_has) {
  EXPECT_EQ(digest_of(model_of(asked("as ever"))), 0x326d349d13f267aU);
}

TEST_F(training_the_denoiser, writes_the_same_bytes_on_any_number_of_threads) {
  const train_options one = brief("one");
  train_options three = brief("three");
  three.threads = 3;
  train_options other = brief("other");
  other.seed = 2;
  const std::string model = model_of(one);
  EXPECT_EQ(model_of(three), model);
  EXPECT_NE(model_of(other), model);
}

TEST_F(training_the_denoiser, tells_of_each_step_and_of_its_loss) {
  std::vector<std::int64_t> steps;
  float last = 0;
  const train_report report = train_denoiser(brief("told"), [&](std::int64_t done, float loss) {
    steps.push_back(done);
    last = loss;
  });
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(report.loss, last);
  EXPECT_GT(report.loss, 0);
  EXPECT_EQ(report.bytes, contents(folder.path() / "told" / "model.safetensors").size());
}

TEST_F(training_the_denoiser, makes_a_model_that_denoise_reads) {
  const train_options options = brief("model");
  train_denoiser(options);
  const denoise::denoiser_config config =
      denoise::read_denoiser_config(options.out / "config.json");
  const device cpu = open_device("cpu", {.threads = 1});
  stream s{cpu};
  pool memory{cpu, "weights"};
  EXPECT_NO_THROW((denoise::denoiser_weights{memory, s, options.out, config}));
  s.synchronize();
}

TEST_F(training_the_denoiser, refuses_what_it_cannot_do_before_it_begins) {
  const auto refused = [](const train_options& options) {
    const train_options copy = options;
    return test::message_of<usage_error>(
        [&] { train_denoiser(copy, [](std::int64_t, float) { FAIL() << "it has begun"; }); });
  };
  train_options o = asked("new");
  o.data = "/nowhere";
  EXPECT_TRUE(test::has(refused(o), "dataset-fashion-mnist"));
  EXPECT_FALSE(std::filesystem::exists(o.out)) << "nothing is left behind";
  o = asked("new");
  o.config = "/nowhere/config.json";
  EXPECT_TRUE(test::has(refused(o), "/nowhere/config.json"));
  o = asked("new");
  std::ofstream{folder.path() / "a file"} << "x";
  o.out = folder.path() / "a file";
  EXPECT_TRUE(test::has(refused(o), "--out"));
  o = asked("new");
  o.config = folder.path() / "config.json";
  std::string text = contents(test::shipped_denoiser() / "config.json");
  text.replace(text.find("28"), 2, "27");
  std::ofstream{o.config} << text;
  EXPECT_TRUE(test::has(refused(o), "28 x 28 and 10"));
}

}  // namespace
}  // namespace reprise
