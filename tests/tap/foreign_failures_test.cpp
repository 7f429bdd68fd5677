// Devices that fail while a graph of somebody else is watched.
#include "reprise/device/faulty.hpp"
#include "reprise/sim/device.hpp"
#include "reprise/toggle/refusal.hpp"
#include "tests/support/observe.hpp"
#include "tests/tap/support.hpp"

namespace reprise {
namespace {

using test::has;
using test::message_of;

// For its helpers.
class helpers : public test::monitored {
 public:
  using test::monitored::expect_sums;
  using test::monitored::send_to;
  using test::monitored::small;

 private:
  void TestBody() override {}
};

// A device whose calls of one kind fail when they are told to.
class failing_device {
 public:
  explicit failing_device(bool seeded) : opened{open(seeded, plan)} {}

  std::shared_ptr<fault_plan> plan = std::make_shared<fault_plan>();
  device opened;
  stream work{opened};
  pool memory{opened, "theirs"};
  buffer<float> h{memory, 8, work};

  graph captured(monitor& eye) const {
    return capture(work, [&](stream_ref c) {
      tap_window window = eye.open_window(c);
      for (int layer = 0; layer < 2; ++layer) {
        fill(c, write(h), static_cast<float>(layer));
        window.tap({"h", layer}, as_tensor(h.all(), {2, 4}));
      }
    });
  }

 private:
  static device open(bool seeded, const std::shared_ptr<fault_plan>& plan) {
    sim::adversary_options how;
    how.takes_fault_points = false;
    auto implementation = faulty(seeded ? sim::open_adversary(how) : sim::open_cpu(1), plan);
    auto table = resolve_kernels(test::tap_kernels(), implementation->traits());
    return device{std::move(implementation), std::move(table)};
  }
};

// The first failure leaves it to the next launch; after the second all is as it was found.
TEST(foreign_failures, to_switch_stop_the_launch_and_then_the_watch) {
  for (const bool seeded : {false, true}) {
    failing_device on{seeded};
    monitor_options how = helpers::small();
    how.switch_by = toggle_mode::host_lazy;
    monitor eye{on.opened, how};
    eye.watch({"*", row_mode::all()});
    const auto book = std::make_shared<test::kept_book>();
    helpers::send_to(eye, book);
    const graph made = on.captured(eye);
    const executable theirs = made.instantiate(on.work);
    watched_graph watched = eye.bind(made, theirs);
    watched.launch(on.work);
    const auto fails_to_switch = [&](const char* enabled) {
      eye.enable(enabled);
      on.plan->fail_call(seam_call::enable, 1);
      watched.launch(on.work);
    };
    EXPECT_TRUE(has(message_of<switch_refusal>([&] { fails_to_switch("h:0"); }), "launch again"));
    watched.launch(on.work);
    EXPECT_THROW(fails_to_switch("h:1"), switch_refusal);
    eye.flush();
    EXPECT_EQ(book->records.size(), 3U);
    const test::reports said;
    fails_to_switch("h:1");  // launched, unwatched
    for (int i = 0; i < 3; ++i) watched.launch(on.work);
    on.work.synchronize();
    EXPECT_EQ(test::reports::taken().size(), 1U);
    eye.flush();
    EXPECT_EQ(book->records.size(), 3U);
    EXPECT_EQ(eye.counts().lost, 0U);
    EXPECT_EQ(eye.counts().withdrawn, 3U);
    helpers::expect_sums(eye.counts());
  }
}

// A launch that fails has published nothing, and the next has its turn.
TEST(foreign_failures, of_the_launch_itself_cost_that_one_alone) {
  for (const bool seeded : {false, true}) {
    failing_device on{seeded};
    monitor eye{on.opened, helpers::small()};
    eye.watch({"*", row_mode::all()});
    const auto book = std::make_shared<test::kept_book>();
    helpers::send_to(eye, book);
    const graph made = on.captured(eye);
    const executable theirs = made.instantiate(on.work);
    watched_graph watched = eye.bind(made, theirs);
    for (int i = 0; i < 3; ++i) {
      watched.launch(on.work);
      on.plan->fail_call(seam_call::launch, 1);
      EXPECT_THROW(watched.launch(on.work), device_error);
    }
    watched.launch(on.work);
    eye.flush();
    EXPECT_EQ(book->records.size(), 8U);
    EXPECT_EQ(eye.counts().withdrawn, 3U);
    EXPECT_EQ(eye.counts().lost, 0U);
    helpers::expect_sums(eye.counts());
  }
}

// A window whose calls fail, wherever: the capture is the owner's to give up, and the next is
// whole.
TEST(foreign_failures, in_a_window_leave_the_monitor_as_it_was) {
  for (const bool seeded : {false, true}) {
    for (std::uint64_t n = 1;; ++n) {
      SCOPED_TRACE(n);
      failing_device on{seeded};
      monitor eye{on.opened, helpers::small()};
      eye.watch({"*", row_mode::all()});
      const auto book = std::make_shared<test::kept_book>();
      helpers::send_to(eye, book);
      const test::reports said;
      on.plan->fail_call(n);
      try {
        (void)on.captured(eye);
      } catch (const error&) {
      }
      const bool fired = on.plan->fired();
      on.plan->fail_call(0);
      const graph made = on.captured(eye);
      const executable theirs = made.instantiate(on.work);
      watched_graph watched = eye.bind(made, theirs);
      watched.launch(on.work);
      eye.flush();
      EXPECT_EQ(book->records.size(), 2U);
      if (!fired) break;
    }
  }
}

}  // namespace
}  // namespace reprise
