// A mark may be of one shard of a tensor: each is a point of its own, and its records say which.
#include "reprise/tap/monitor.hpp"
#include "tests/support/observe.hpp"
#include "tests/tap/support.hpp"

namespace reprise {
namespace {

class shards : public test::monitored {
 protected:
  // Marks x as each of `parts`, in this order.
  step_result run_marking(replay_cache& cache, const std::vector<shard_of>& parts) {
    signature declared{"sharded"};
    const input<float> x = declared.in<float>("x", {any, 4});
    const output<float> y = declared.out<float>("y");
    const step what{declared, [=](step_scope& run) {
                      const dims shape = run.shape(x);
                      const view<float> q = run.scratch<float>(shape);
                      copy(run, read(run[x]), write(q));
                      for (const shard_of& part : parts) {
                        run.mark({"q", 5, part}, as_tensor(q, shape));
                      }
                      copy(run, read(q), write(run.make(y, shape)));
                    }};
    std::vector<float> values = test::tap_bench::values(2 * 4, 0);
    step_result done = cache.run(on.work, what, {x.from_host(values)});
    on.work.synchronize();
    return done;
  }
};
MONITORED_ON_ALL_DEVICES(shards);

TEST_P(shards, of_one_tensor_are_points_of_their_own_and_records_say_which) {
  const std::vector<shard_of> parts{{}, {0, 2, 1}, {1, 2, 1}, {1, 2, 0}};
  monitor eye{on.opened, small()};
  eye.watch({"q:5", row_mode::all()});
  send_here(eye);
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  run_marking(cache, parts);
  eye.flush();
  ASSERT_EQ(book->records.size(), parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const tap_record& got = book->records[i].about;
    EXPECT_EQ((shard_of{got.shard, got.shards, got.shard_axis}), parts[i]) << i;
    EXPECT_EQ(book->records[i].kind, "q");
    EXPECT_EQ(got.layer, 5);
  }
  const tap_counts counts = eye.counts();
  expect_sums(counts);
  ASSERT_EQ(counts.points.size(), parts.size());
  for (const point_counts& one : counts.points) EXPECT_EQ(one.published, 1U);
  EXPECT_TRUE(
      test::has(eye.metrics(),
                "reprise_tap_point_published_total{kind=\"q\",layer=\"5\",shard=\"0of2\"} 1\n"));
  EXPECT_TRUE(
      test::has(eye.metrics(), "reprise_tap_point_published_total{kind=\"q\",layer=\"5\"} 1\n"));
}

TEST_P(shards, that_are_none_are_refused_by_the_point) {
  monitor eye{on.opened, small()};
  eye.watch({"*", row_mode::all()});
  send_here(eye);
  for (const shard_of wrong : {shard_of{2, 2, 0}, {-1, 2, 0}, {0, 0, 0}, {0, 2, -2}}) {
    replay_cache cache{on.opened, {.record = false}};
    cache.observe(eye.observer());
    const std::string line = test::message_of<usage_error>([&] { run_marking(cache, {wrong}); });
    EXPECT_TRUE(test::has(line, "point q:5 is marked as shard")) << line;
  }
}

}  // namespace
}  // namespace reprise
