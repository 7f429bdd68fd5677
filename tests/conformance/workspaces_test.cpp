// Rule 20: scratch, workspaces included, is taken per call from the pool of who runs, never per
// stream.
#include <algorithm>

#include "reprise/replay/cache.hpp"
#include "reprise/replay/recorder.hpp"
#include "tests/conformance/conformance.hpp"

namespace reprise::test {
namespace {

constexpr std::int64_t length = 1 << 14;

// y = value, by way of a workspace as large as y, beside scratch whose place is noted. It waits for
// `x`, which it does not use.
class by_workspace {
 public:
  explicit by_workspace(std::int32_t value) : value_{value} {}

  signature declared{"by_workspace"};
  const input<std::int32_t> x = declared.in<std::int32_t>("x", {any});
  const output<std::int32_t> y = declared.out<std::int32_t>("y");
  std::int32_t* scratch = nullptr;  // of the run of the body that came last
  const step what{declared, [this](step_scope& run) {
                    const view<std::int32_t> own = run.scratch<std::int32_t>({length});
                    scratch = own.data();
                    fill(run, write<std::int32_t>{own}, value_);
                    launch(run, through_workspace, write(run.make(y, {length})), value_);
                  }};

 private:
  std::int32_t value_;
};

std::vector<std::int32_t> output_of(stream_ref on, const by_workspace& of,
                                    const step_result& done) {
  std::vector<std::int32_t> host(static_cast<std::size_t>(length));
  copy(on, read<std::int32_t>{done[of.y].get()},
       write<std::int32_t>{view<std::int32_t>{host.data(), host.size()}});
  on.synchronize();
  return host;
}

bool apart(const std::int32_t* a, const std::int32_t* b) {
  return a + length <= b || b + length <= a;
}

TEST_P(rule_20, two_recordings_take_scratch_of_their_own) {
  by_workspace first{1};
  by_workspace second{2};
  eager_runner eager{dev()};
  recorder maker{dev(), eager};
  const std::vector<std::int32_t> none{0};
  const recorded a = maker.record(s(), first.what, {first.x.from_host(none)});
  const recorded b = maker.record(s(), second.what, {second.x.from_host(none)});
  ASSERT_TRUE(a.made.has_value() && b.made.has_value());
  EXPECT_TRUE(apart(first.scratch, second.scratch));
  EXPECT_GE(a.made->bytes(), std::size_t{3} * 4 * length) << "scratch, output and workspace";
}

TEST_P(rule_20, recordings_that_run_on_two_streams_at_once_do_not_meet) {
  by_workspace first{1};
  by_workspace second{2};
  eager_runner eager{dev()};
  recorder maker{dev(), eager};
  const std::vector<std::int32_t> none{0};
  recorded a = maker.record(s(), first.what, {first.x.from_host(none)});
  recorded b = maker.record(s(), second.what, {second.x.from_host(none)});
  ASSERT_TRUE(a.made.has_value() && b.made.has_value());
  const stream other{dev()};
  for (int i = 0; i < 20; ++i) {
    const auto of_a = a.made->replay(s(), first.what, {first.x.from_host(none)});
    const auto of_b = b.made->replay(other, second.what, {second.x.from_host(none)});
    ASSERT_TRUE(of_a.has_value() && of_b.has_value());
    EXPECT_TRUE(std::ranges::all_of(output_of(s(), first, *of_a), [](int v) { return v == 1; }));
    EXPECT_TRUE(std::ranges::all_of(output_of(other, second, *of_b), [](int v) { return v == 2; }));
  }
}

TEST_P(rule_20, D14_a_recording_that_is_destroyed_takes_nothing_from_another) {
  by_workspace first{1};
  by_workspace second{2};
  eager_runner eager{dev()};
  recorder maker{dev(), eager};
  const std::vector<std::int32_t> none{0};
  recorded a = maker.record(s(), first.what, {first.x.from_host(none)});
  recorded b = maker.record(s(), second.what, {second.x.from_host(none)});
  ASSERT_TRUE(a.made.has_value() && b.made.has_value());
  const std::size_t with_both = leased();
  a.made.reset();
  EXPECT_LT(leased(), with_both);
  const auto poison = filled<std::uint8_t>(with_both, std::uint8_t{0xff});
  for (int i = 0; i < 10; ++i) {
    const auto of_b = b.made->replay(s(), second.what, {second.x.from_host(none)});
    ASSERT_TRUE(of_b.has_value());
    EXPECT_TRUE(std::ranges::all_of(output_of(s(), second, *of_b), [](int v) { return v == 2; }));
  }
  EXPECT_TRUE(std::ranges::all_of(read_back(s(), poison), [](int v) { return v == 0xff; }))
      << "nor is it written after";
}

TEST_P(rule_20, an_eager_run_takes_nothing_from_a_recording) {
  by_workspace first{1};
  by_workspace second{2};
  eager_runner eager{dev()};
  recorder maker{dev(), eager};
  const std::vector<std::int32_t> none{0};
  recorded a = maker.record(s(), first.what, {first.x.from_host(none)});
  ASSERT_TRUE(a.made.has_value());
  const std::int32_t* const of_the_recording = first.scratch;
  const step_result plain = eager.run(s(), second.what, {second.x.from_host(none)}, {}, nullptr);
  EXPECT_TRUE(apart(of_the_recording, second.scratch));
  const auto replayed = a.made->replay(s(), first.what, {first.x.from_host(none)});
  EXPECT_TRUE(std::ranges::all_of(output_of(s(), first, *replayed), [](int v) { return v == 1; }));
  EXPECT_TRUE(std::ranges::all_of(output_of(s(), second, plain), [](int v) { return v == 2; }));
}

// Workspaces of two branches, as the launches declare them: eagerly, in the warm-up, and captured.
TEST_P(rule_20, two_branches_of_a_step_have_workspaces_of_their_own) {
  const stream side{dev()};
  signature declared{"two_branches"};
  const input<std::int32_t> x = declared.in<std::int32_t>("x", {any});
  const output<std::int32_t> y = declared.out<std::int32_t>("y");
  const output<std::int32_t> z = declared.out<std::int32_t>("z");
  const step what{declared, [&](step_scope& run) {
                    order(run, side);
                    launch(run.on(side), through_workspace, write(run.make(y, {length})), 1);
                    launch(run, through_workspace, write(run.make(z, {length})), 2);
                    order(side, run);
                  }};
  std::vector<const std::int32_t*> workspaces;
  const submission_watch watch{[&](stream_ref, const work& seen) {
    if (seen.label != through_workspace.name()) return;
    workspaces.push_back(static_cast<const std::int32_t*>(seen.accesses.back().begin));
  }};
  const std::vector<std::int32_t> none{0};
  for (const bool record : {false, true}) {
    workspaces.clear();
    replay_cache cache{dev(), {.record = record}};
    const step_result done = cache.run(s(), what, {x.from_host(none)});
    EXPECT_EQ(done.how, record ? ran::captured : ran::eager);
    ASSERT_EQ(workspaces.size(), record ? 4U : 2U);
    for (std::size_t i = 0; i < workspaces.size(); i += 2) {
      EXPECT_TRUE(apart(workspaces[i], workspaces[i + 1]));
    }
    for (const auto& [out, value] : {std::pair{&y, 1}, std::pair{&z, 2}}) {
      const view<const std::int32_t> from = done[*out].get();
      std::vector<std::int32_t> host(from.size());
      copy(s(), read<std::int32_t>{from},
           write<std::int32_t>{view<std::int32_t>{host.data(), host.size()}});
      s().synchronize();
      EXPECT_TRUE(std::ranges::all_of(host, [&](int v) { return v == value; }));
    }
  }
}

TEST_P(rule_20, a_stream_lends_no_workspace) {
  const buffer<std::int32_t> out{memory(), 100, s()};
  const std::string message =
      message_of<usage_error>([&] { launch(s(), through_workspace, write(out), 1); });
  EXPECT_TRUE(has(message, "through_workspace needs 400 bytes of workspace")) << message;
  expect_clean(s());
}

}  // namespace
}  // namespace reprise::test
