// The door of all enqueued work, watched: what a watch is shown, in which order, and how it stops
// a work.
#include "reprise/device/host_thread.hpp"
#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

using watch_on = on_each_device;

struct sight {
  work_kind kind{};
  std::string label;
  std::vector<access> accesses;
  std::uint_least32_t line = 0;
};

class sights {
 public:
  std::vector<sight> seen;

 private:
  submission_watch watch_{[this](stream_ref, const work& what) {
    seen.push_back({what.kind,
                    std::string{what.label},
                    {what.accesses.begin(), what.accesses.end()},
                    what.place.line()});
  }};
};

TEST_P(watch_on, sees_every_kind_of_work_with_its_label_and_place) {
  const buffer<int> x{memory(), 4, s()};
  event passed{dev()};
  sights watched;
  const auto line = std::source_location::current().line();
  fill(s(), write<int>{x}, 1);
  copy(s(), read<int>{x.all().subview(0, 2)}, write<int>{x.all().subview(2, 2)});
  host_call(s(), "count", {}, [] {});
  external(s(), "library", {}, [](void*) {});
  passed.record(s());
  passed.wait(s());
  s().synchronize();

  const std::vector<std::pair<work_kind, std::string>> wanted{
      {work_kind::fill, "fill"},
      {work_kind::copy, "copy"},
      {work_kind::host_call, "count"},
      {work_kind::external, "library"},
      {work_kind::event_record, "event record"},
      {work_kind::event_wait, "event wait"}};
  ASSERT_EQ(watched.seen.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(watched.seen[i].kind, wanted[i].first);
    EXPECT_EQ(watched.seen[i].label, wanted[i].second);
    EXPECT_EQ(watched.seen[i].line, line + i + 1);
  }
}

TEST_P(watch_on, sees_what_a_work_declares_to_touch) {
  const auto x = filled<int>(6, 1);
  const access whole = access_of(inout<int>{x});
  sights watched;
  copy(s(), read<int>{x.all().subview(0, 2)}, write<int>{x.all().subview(2, 4)});
  host_call(s(), "none", {}, [] {});
  external(s(), "one", {whole}, [](void*) {});
  s().synchronize();

  ASSERT_EQ(watched.seen.size(), 3U);
  const auto& copied = watched.seen[0].accesses;
  ASSERT_EQ(copied.size(), 2U);
  EXPECT_EQ(copied[0].begin, x.all().data());
  EXPECT_EQ(copied[0].bytes, 8U);
  EXPECT_FALSE(copied[0].writes);
  EXPECT_EQ(copied[1].begin, x.all().data() + 2);
  EXPECT_EQ(copied[1].bytes, 8U) << "what is copied, not the whole destination";
  EXPECT_TRUE(copied[1].writes);
  EXPECT_TRUE(watched.seen[1].accesses.empty());
  ASSERT_EQ(watched.seen[2].accesses.size(), 1U);
  EXPECT_EQ(watched.seen[2].accesses[0].begin, whole.begin);
}

TEST_P(watch_on, the_innermost_sees_first_and_each_sees_once) {
  const buffer<int> x{memory(), 4, s()};
  std::string order;
  const submission_watch outer{[&](stream_ref, const work&) { order += 'o'; }};
  {
    const submission_watch inner{[&](stream_ref, const work&) { order += 'i'; }};
    fill(s(), write<int>{x}, 1);
  }
  fill(s(), write<int>{x}, 2);
  EXPECT_EQ(order, "ioo");
}

TEST_P(watch_on, that_throws_stops_the_work) {
  const auto x = filled<int>(4, 1);
  bool told_outer = false;
  const submission_watch outer{[&](stream_ref, const work&) { told_outer = true; }};
  const calls_since now{*counts};
  {
    const submission_watch refusing{
        [](stream_ref, const work&) { throw usage_error{"not this one"}; }};
    EXPECT_EQ(message_of<usage_error>([&] { fill(s(), write<int>{x}, 2); }), "not this one");
  }
  EXPECT_FALSE(told_outer);
  EXPECT_EQ(now[seam_call::fill], 0U);
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 1));
}

TEST_P(watch_on, sees_works_before_the_device_does) {
  const buffer<int> x{memory(), 4, s()};
  const calls_since now{*counts};
  std::uint64_t at_device = 9;
  const submission_watch looking{
      [&](stream_ref, const work&) { at_device = now[seam_call::fill]; }};
  fill(s(), write<int>{x}, 2);
  EXPECT_EQ(at_device, 0U);
  EXPECT_EQ(now[seam_call::fill], 1U);
}

TEST_P(watch_on, sees_only_the_works_of_its_own_thread) {
  const buffer<int> x{memory(), 4, s()};
  s().synchronize();
  sights watched;
  host_thread{dev(),
              [&] {
                const stream other{dev()};
                fill(other, write<int>{x}, 1);
              }}
      .join();
  EXPECT_TRUE(watched.seen.empty());
}

TEST_P(watch_on, sees_works_that_are_captured_once_and_replays_never) {
  const buffer<int> x{memory(), 4, s()};
  sights watched;
  const graph made = capture(s(), [&](stream_ref c) { fill(c, write<int>{x}, 1); });
  const executable replayed = made.instantiate(s());
  replayed.launch(s());
  replayed.launch(s());
  s().synchronize();
  EXPECT_EQ(watched.seen.size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(devices, watch_on, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
