#include "tests/decode/rows_alone.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <utility>

#include "tests/decode/support.hpp"
#include "workloads/decode/llama.hpp"

namespace reprise::test {

namespace {

// What a plain run marks, copied at once. Rows are tokens of one request, one behind the other.
class plain_rows final : public mark_observer {
 public:
  void on_mark(step_scope& run, point where, const tensor_ref& what) override {
    std::vector<std::byte> bytes(what.bytes());
    copy_bytes(run, what.data, bytes.data(), bytes.size());
    const stream_ref on = run;
    on.synchronize();
    const auto rows = static_cast<std::size_t>(what.shape[0]);
    const std::size_t row = bytes.size() / rows;
    for (std::size_t i = 0; i < rows; ++i) {
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(i * row);
      all[{request, where.layer, token + static_cast<std::int64_t>(i)}] = {
          begin, begin + static_cast<std::ptrdiff_t>(row)};
    }
  }
  std::uint64_t request = 0;
  std::int64_t token = 0;  // of its first row
  row_map all;
};

void run_shipped(device_ref opened, const std::shared_ptr<plain_rows>& marks) {
  decode::decode_options o =
      tiny_options({watched_prompts()[static_cast<std::size_t>(marks->request)]}, watched_tokens);
  o.eager = true;
  o.batch_sizes = {1};
  decode::run_decode(
      opened, o, [](std::size_t, const decode::request&) {}, marks,
      [&](std::span<const request_rows> rows) { marks->token = rows[0].first_token; });
}

// The first half of the text at once, and then token by token.
void run_small(device_ref opened, const std::shared_ptr<plain_rows>& marks) {
  const decode::model_config config = small_config();
  const std::vector<std::int32_t>& text = small_texts()[static_cast<std::size_t>(marks->request)];
  const stream work{opened};
  pool memory{opened, "alone"};
  const decode::llama model{
      memory, work,
      config, decode::random_weights(memory, work, config, decode::weight_storage::f32, small_seed),
      1,      config.context};
  replay_cache cache{opened, {.record = false}};
  cache.observe(marks);
  const decode::model_step many = decode::prefill_step(model, false);
  const decode::model_step one = decode::decode_step(model, false);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t count = at == 0 ? (text.size() + 1) / 2 : 1;
    const auto first = text.begin() + static_cast<std::ptrdiff_t>(at);
    const std::vector<std::int32_t> tokens(first, first + static_cast<std::ptrdiff_t>(count));
    std::vector<std::int32_t> positions(count);
    for (std::size_t i = 0; i < count; ++i) positions[i] = static_cast<std::int32_t>(at + i);
    const std::vector<std::int32_t> slots(count, 0);
    marks->token = static_cast<std::int64_t>(at);
    const decode::model_step& step = at == 0 ? many : one;
    cache.run(work, step.body,
              {step.tokens.from_host(tokens), step.positions.from_host(positions),
               step.slots.from_host(slots)});
    at += count;
  }
  work.synchronize();
}

// u64 words: captures, graphs made, launches; then request, layer, token, size and bytes of a row.
void write_word(std::ostream& out, std::uint64_t word) {
  out.write(reinterpret_cast<const char*>(&word), sizeof word);
}
std::uint64_t read_word(std::istream& in) {
  std::uint64_t word = 0;
  in.read(reinterpret_cast<char*>(&word), sizeof word);
  return word;
}

row_map read_rows(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  for (const char* what : {"captures", "graphs", "launches"}) {
    EXPECT_EQ(read_word(in), 0U) << what << " of a plain run";
  }
  row_map rows;
  while (in.peek() != std::ifstream::traits_type::eof()) {
    const std::uint64_t request = read_word(in);
    const auto layer = static_cast<int>(read_word(in));
    const auto token = static_cast<std::int64_t>(read_word(in));
    std::vector<std::byte> bytes(read_word(in));
    in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    rows[{request, layer, token}] = std::move(bytes);
  }
  return rows;
}

const char* name_of(alone_model of) {
  return of == alone_model::shipped ? "shipped" : "small";
}

}  // namespace

const std::vector<std::string>& watched_prompts() {
  static const std::vector<std::string> prompts{"In the beginning ", "x", "And it came", "The LORD",
                                                "Blessed are the "};
  return prompts;
}

decode::model_config small_config() {
  decode::model_config c;
  c.vocabulary = 48;
  c.width = 32;
  c.inner_width = 64;
  c.layers = 3;
  c.heads = 4;
  c.kv_heads = 2;
  c.head_dim = 8;
  c.context = 24;
  c.norm_epsilon = 1e-5F;
  c.rotary_base = 10000;
  c.tied_output = true;
  return c;
}

const std::vector<std::vector<std::int32_t>>& small_texts() {
  static const std::vector<std::vector<std::int32_t>> texts = [] {
    std::mt19937_64 dice{11};
    std::vector<std::vector<std::int32_t>> made;
    for (const std::size_t length : {1U, 2U, 3U, 5U, 7U, 9U, 4U, 6U, 8U, 14U}) {
      std::vector<std::int32_t> text;
      while (text.size() < length) text.push_back(static_cast<std::int32_t>(dice() % 48));
      made.push_back(std::move(text));
    }
    return made;
  }();
  return texts;
}

int write_rows_alone(const std::string& of, const std::string& device, const std::string& file) {
  const bool shipped = of == name_of(alone_model::shipped);
  const auto calls = std::make_shared<call_counts>();
  row_map rows;
  try {
    const reprise::device opened = open_device(device, {.threads = 1, .counts = calls});
    const std::size_t requests = shipped ? watched_prompts().size() : small_texts().size();
    for (std::size_t i = 0; i < requests; ++i) {
      const auto marks = std::make_shared<plain_rows>();
      marks->request = i;
      (shipped ? run_shipped : run_small)(opened, marks);
      rows.merge(marks->all);
    }
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "%s\n", failed.what());
    return 1;
  }
  std::ofstream out{file, std::ios::binary};
  for (const seam_call call : {seam_call::capture, seam_call::instantiate, seam_call::launch}) {
    write_word(out, (*calls)[call]);
  }
  for (const auto& [name, bytes] : rows) {
    const auto& [request, layer, token] = name;
    write_word(out, request);
    write_word(out, static_cast<std::uint64_t>(layer));
    write_word(out, static_cast<std::uint64_t>(token));
    write_word(out, bytes.size());
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  }
  out.close();
  return out ? 0 : 1;
}

const row_map& rows_alone(alone_model of, const std::string& device) {
  // A simulated GPU has the bits of the cpu, and takes longer.
  const std::string on = device.starts_with("sim") ? "cpu" : device;
  static std::map<std::pair<alone_model, std::string>, row_map> known;
  row_map& rows = known[{of, on}];
  if (!rows.empty()) return rows;
  const std::filesystem::path file =
      std::filesystem::path{::testing::TempDir()} /
      (std::string{"reprise-rows-alone-"} + name_of(of) + std::to_string(::getpid()));
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string line = "'" + self + "' " + alone_flag + " " + name_of(of) + " " + on + " '" +
                           file.string() + "' </dev/null";
  const int status = std::system(line.c_str());
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    ADD_FAILURE() << "the other process failed: " << line;
    return rows;
  }
  rows = read_rows(file);
  std::filesystem::remove(file);
  return rows;
}

}  // namespace reprise::test
