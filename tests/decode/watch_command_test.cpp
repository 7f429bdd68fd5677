// `reprise run decode --watch … --out …` as a person types it: what arrives, what is said of it,
// and what is refused before anything is made.
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/decode/http_get.hpp"
#include "tests/records/clickhouse_process.hpp"
#include "tests/records/run_support.hpp"
#include "tests/support/command.hpp"
#include "tests/support/paths.hpp"

namespace reprise::test {
namespace {

constexpr int layers = 8;  // of the model

class watch_command_test : public command_fixture {
 protected:
  std::string decode(const std::string& more) const {
    return "run decode --device cpu --model " + tiny_llama().string() + " " + more;
  }
  std::string two_requests(const std::string& more) const {
    return decode("--prompt 'In the beginning ' --prompt x --tokens 20 --watch 'resid_pre:*' " +
                  more);
  }
  nlohmann::json json_of(const std::string& arguments) const {
    const run_result result = run(arguments + " --json");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.exit_code == 0 ? nlohmann::json::parse(result.out) : nlohmann::json{};
  }
  std::string place(const char* name) const { return (folder / name).string(); }
};

// Of those with run directories.
class watch_folder_test : public watch_command_test {
 protected:
  void SetUp() override {
    watch_command_test::SetUp();
    if (!has_arrow()) GTEST_SKIP() << "this build has no Arrow C++: pip install pyarrow";
  }
};

TEST_F(watch_folder_test, what_a_run_took_is_what_its_folder_has) {
  const std::string run1 = place("run1");
  const nlohmann::json taps = json_of(two_requests("--rows last --out " + run1)).at("taps");
  EXPECT_EQ(taps.at("records"), layers * 40);
  EXPECT_EQ(taps.at("lost"), 0);
  ASSERT_EQ(taps.at("sinks").size(), 1U);
  EXPECT_EQ(taps.at("sinks")[0].at("sink"), run1);
  EXPECT_EQ(taps.at("sinks")[0].at("delivered"), layers * 40);
  EXPECT_EQ(taps.at("sinks")[0].at("lost"), 0);

  const nlohmann::json summary = json_of("records " + run1 + " --summary");
  EXPECT_EQ(summary.at("run"), taps.at("run"));
  EXPECT_EQ(summary.at("state"), "closed");
  EXPECT_EQ(summary.at("records"), layers * 40);
  EXPECT_EQ(summary.at("lost"), 0);
  EXPECT_EQ(summary.at("requests"), 2);
  ASSERT_EQ(summary.at("points").size(), static_cast<std::size_t>(layers));
  EXPECT_EQ(summary.at("points")[7].at("point"), "resid_pre:7");
  EXPECT_EQ(summary.at("points")[7].at("records"), 40);
}

TEST_F(watch_folder_test, all_rows_are_those_of_prompts_too_and_go_to_every_place) {
  const nlohmann::json taps =
      json_of(two_requests("--rows all --out " + place("a") + " --out count: --out " + place("b")))
          .at("taps");
  // 17 tokens of one prompt, one of the other, and 19 of each that were made and read again.
  EXPECT_EQ(taps.at("rows"), layers * (17 + 1 + 2 * 19));
  EXPECT_EQ(taps.at("sinks").size(), 3U);
  EXPECT_EQ(read_back(folder / "a").size(), taps.at("records"));
  EXPECT_TRUE(read_back(folder / "a") == read_back(folder / "b"));
}

TEST_F(watch_folder_test, a_place_that_cannot_be_used_is_one_line_and_stays_as_it_is) {
  const std::string run1 = place("run1");
  ASSERT_EQ(run(two_requests("--quiet --out " + run1)).exit_code, 0);
  const std::string before = contents(folder / "run1" / "manifest.json");
  expect_refused(two_requests("--out " + run1), "a run is there that has ended");
  EXPECT_EQ(contents(folder / "run1" / "manifest.json"), before);
  expect_refused(two_requests("--out " + folder.string()), "the folder holds other files");
  expect_refused(two_requests("--out /proc/reprise-run"), "the folder of the run cannot be made");
  expect_refused(two_requests("--out " + run1 + "/manifest.json/x"), "cannot be made");
}

TEST_F(watch_folder_test, a_run_that_is_refused_for_something_else_makes_no_folder) {
  const std::string out = " --out " + place("run1");
  expect_refused(decode("--watch resid_pst:0" + out), "'resid_pst:0' is no point");
  expect_refused(decode("--watch resid_pre:8" + out), "'resid_pre:8' is no point");
  expect_refused(decode("--watch '*' --rows some" + out), "--rows some: give all or last");
  expect_refused(decode("--watch '*' --prompt ''" + out), "prompt 1 is empty");
  expect_refused(decode("--watch '*' --batch-sizes 0" + out), "batch sizes");
  expect_refused(decode("--watch '*' --out clickhouse://127.0.0.1:1/taps" + out), "127.0.0.1:1");
  EXPECT_FALSE(std::filesystem::exists(folder / "run1"));
}

TEST_F(watch_folder_test, a_full_disk_ends_no_run_and_is_told_of_at_the_end) {
  const std::filesystem::path disk = folder / "disk";
  std::filesystem::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=128k") != 0) {
    GTEST_SKIP() << "a small file system can be mounted by root alone";
  }
  struct unmounted {
    std::filesystem::path at;
    ~unmounted() { ::umount2(at.c_str(), MNT_DETACH); }
  } const at_the_end{disk};
  const std::string run1 = (disk / "run1").string();
  const run_result result =
      run(two_requests("--json --quiet --rows all --out " + run1 + " --out " + place("sound")));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("No space left on device"), std::string::npos) << result.err;
  const nlohmann::json value = nlohmann::json::parse(result.out);
  EXPECT_EQ(value.at("steps").at("eager"), 2) << "the model ran to its end";
  EXPECT_EQ(value.at("requests")[1].at("ids").size(), 20U);
  const nlohmann::json& full = value.at("taps").at("sinks")[0];
  EXPECT_GT(full.at("lost"), 0);
  EXPECT_EQ(full.at("delivered").get<int>() + full.at("lost").get<int>(), full.at("published"));
  EXPECT_EQ(read_back(run1).size(), full.at("delivered"));
  EXPECT_EQ(value.at("taps").at("sinks")[1].at("lost"), 0);
  EXPECT_EQ(read_back(folder / "sound").size(), full.at("published"));
}

TEST_F(watch_command_test, options_that_mean_nothing_alone_are_refused_by_name) {
  for (const char* option :
       {"--out run1", "--rows all", "--when-full drop", "--metrics m.txt", "--metrics-port 0"}) {
    const std::string name{option, std::string_view{option}.find(' ')};
    expect_refused(decode(option), name + " goes with --watch SET");
  }
  expect_refused(two_requests("--out x --out x"), "--out x: it is given twice");
  expect_refused(two_requests("--out ftp://host/x"), "it is no sink");
  expect_refused(two_requests("--out clickhouse://u:secret@h/db"), "no port is given");
  expect_refused(two_requests("--metrics /no/such/folder/m"), "--metrics \"/no/such/folder/m\"");
  expect_refused(two_requests("--metrics-port 65536"), "--metrics-port");
  expect_refused(two_requests("--metrics-port x"), "--metrics-port");
  expect_refused(decode("--watch ''"), "--watch");
}

class watch_table_test : public watch_command_test {
 protected:
  void SetUp() override {
    watch_command_test::SetUp();
    if (!has_http()) GTEST_SKIP() << "this build has no cpp-httplib: install libcpp-httplib-dev";
  }
};

TEST_F(watch_table_test, a_database_gets_every_row_and_is_refused_in_one_line_where_it_is_wrong) {
  expect_refused(two_requests("--out clickhouse://127.0.0.1:1/taps"),
                 "nobody answers there, start the server or check host and port");
  if (!clickhouse_process::is_installed()) GTEST_SKIP() << "there is no clickhouse-server";
  const clickhouse_process server;
  const std::string at = "127.0.0.1:" + std::to_string(server.address().port);
  const nlohmann::json taps =
      json_of(two_requests("--out clickhouse://scribe:right@" + at + "/default")).at("taps");
  EXPECT_EQ(taps.at("sinks")[0].at("sink"), "clickhouse://" + at + "/default") << "no password";
  const std::string run = taps.at("run");
  EXPECT_EQ(server.ask("SELECT count(), sum(rows), uniq(layer), uniq(request) FROM "
                       "reprise_records WHERE run_name = '" +
                       run + "' FORMAT TabSeparated"),
            std::to_string(layers * 40) + "\t" + std::to_string(layers * 40) + "\t8\t2\n");

  expect_refused(two_requests("--out clickhouse://scribe:wr0ng@" + at + "/default"),
                 "check user and password");
  expect_refused(two_requests("--out clickhouse://" + at + "/nowhere"),
                 "create the database first");
  server.ask("INSERT INTO reprise_schema (name, version) VALUES ('reprise_records', 99)");
  expect_refused(two_requests("--out clickhouse://" + at + "/default"),
                 "schema 99 and this writes");
}

// A run of its own process, of which something is read meanwhile.
class child {
 public:
  explicit child(const std::string& arguments, const std::filesystem::path& out) {
    // The shell is replaced, so that what is waited for is the command.
    const std::string line =
        "exec " + std::string{REPRISE_COMMAND} + " " + arguments + " >" + out.string() + " 2>&1";
    process_ = ::fork();
    if (process_ != 0) return;
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    ::_exit(127);
  }
  ~child() {
    if (process_ > 0) ::kill(process_, SIGKILL);
    exit_code();
  }
  bool runs() {
    if (process_ <= 0) return false;
    if (::waitpid(process_, &status_, WNOHANG) == 0) return true;
    process_ = 0;
    return false;
  }
  int exit_code() {
    if (process_ > 0) ::waitpid(process_, &status_, 0);
    process_ = 0;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
  }

 private:
  pid_t process_ = 0;
  int status_ = -1;
};

TEST_F(watch_table_test, metrics_are_read_on_the_loopback_while_the_run_goes_on_and_not_after) {
  const int port = free_port();
  const std::string metrics_port = "--metrics-port " + std::to_string(port);
  child run{decode("--no-verify --tokens 900 --watch '*' --out count: " + metrics_port),
            folder / "said"};
  std::string text;
  while (run.runs() && text.find("reprise_sink_records_delivered_total") == std::string::npos) {
    text = http_get(port, "/metrics");
  }
  ASSERT_TRUE(run.runs()) << contents(folder / "said");
  EXPECT_TRUE(text.starts_with("HTTP/1.1 200")) << text;
  EXPECT_NE(text.find("\nreprise_tap_steps_total "), std::string::npos) << text;
  EXPECT_NE(text.find("\nreprise_sink_queue_records{sink=\"count:\"} "), std::string::npos);
  EXPECT_TRUE(http_get(port, "/elsewhere").starts_with("HTTP/1.1 404"));
  EXPECT_EQ(http_get(port, "/metrics", "127.0.0.2"), "") << "of one address alone";
  expect_refused(two_requests(metrics_port), "the port cannot be had");
  EXPECT_EQ(run.exit_code(), 0) << contents(folder / "said");
  EXPECT_EQ(http_get(port, "/metrics"), "");
  EXPECT_NE(contents(folder / "said").find("http://127.0.0.1:" + std::to_string(port)),
            std::string::npos);
}

TEST_F(watch_command_test, in_a_build_without_http_says_how_to_get_it) {
  if (has_http()) GTEST_SKIP() << "this build has cpp-httplib";
  expect_refused(two_requests("--metrics-port 0"), "libcpp-httplib-dev");
}

}  // namespace
}  // namespace reprise::test
