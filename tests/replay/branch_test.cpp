// Steps that fork: branches of a run take workspaces of their own, and random draws know no branch.
#include <algorithm>
#include <set>
#include <vector>

#include "reprise/device/enqueue.hpp"
#include "reprise/replay/recorder.hpp"
#include "tests/replay/support.hpp"

namespace reprise::test {
namespace {

class branches_on : public testing::TestWithParam<std::string> {
 protected:
  bench on_{GetParam()};
};

TEST_P(branches_on, take_workspaces_of_their_own) {
  signature declared{"forking"};
  const input<float> x = declared.in<float>("x", {any});
  const output<float> y = declared.out<float>("y");
  const stream side{on_.opened};
  std::vector<std::span<std::byte>> lent;
  const step what{
      declared, [&](step_scope& run) {
        event forked{on_.opened}, joined{on_.opened};
        forked.record(run);
        forked.wait(side);
        const branch_scope branch = run.on(side);
        lent.clear();
        for (const workspace_ref from : {run.workspace(), branch.workspace(), run.workspace()}) {
          lent.push_back(from.take(from.owner, 1000));
        }
        const view<float> out = run.make(y, run.shape(x));
        copy(run.on(side), read(run[x]), write(out));
        joined.record(side);
        joined.wait(run);
      }};
  eager_runner eager{on_.opened};
  recorder maker{on_.opened, eager};
  const std::vector<float> values{1, 2, 3};
  recorded made = maker.record(on_.work, what, {x.from_host(values)});
  ASSERT_TRUE(made.made.has_value());
  EXPECT_EQ(lent[0].data(), lent[2].data()) << "one branch runs in order";
  const bool apart =
      lent[0].data() + 1000 <= lent[1].data() || lent[1].data() + 1000 <= lent[0].data();
  EXPECT_TRUE(apart);
  const std::vector<float> later{4, 5, 6};
  const auto replayed = made.made->replay(on_.work, what, {x.from_host(later)});
  ASSERT_TRUE(replayed.has_value());
  EXPECT_EQ(read_back(on_.work, (*replayed)[y].get()), later);
}

TEST_P(branches_on, draws_without_a_counter_are_refused_by_name) {
  signature declared{"undeclared"};
  const output<float> y = declared.out<float>("y");
  const step what{declared, [&](step_scope& run) {
                    run.make(y, {1});
                    run.draws(1);
                  }};
  replay_cache cache{on_.opened, {.record = false}};
  try {
    cache.run(on_.work, what, {});
    FAIL() << "threw nothing";
  } catch (const usage_error& refused) {
    EXPECT_NE(std::string_view{refused.what()}.find("signature::random"), std::string_view::npos)
        << refused.what();
  }
}

// A chain of products, and beside it a sum over each link: the streams that the body's kernels went
// to in the last of so many runs, and the sums.
struct aside_run {
  std::set<stream_id> streams;
  std::vector<float> sums;
  step_counts counts;
};

constexpr int links = 4;

aside_run run_aside(bench& here, const cache_options& options) {
  signature declared{"chain with sums"};
  const input<float> x = declared.in<float>("x", {any, 1});
  const output<float> y = declared.out<float>("y");
  const output<float> sums = declared.out<float>("sums");
  buffer<float> two{here.memory, 1, here.work};
  upload(here.work, {2.0F}, two.all());
  aside_run seen;
  const step chain{
      declared, [&](step_scope& run) {
        seen.streams.clear();
        const submission_watch watch{[&](stream_ref stream, const work& each) {
          if (each.kind == work_kind::kernel) seen.streams.insert(stream.id());
        }};
        const dims shape = run.shape(x);
        const view<float> all = run.make(sums, {links, shape[0]});
        view<const float> at = run[x];
        for (int i = 0; i < links; ++i) {
          const view<float> next = i + 1 == links ? run.make(y, shape) : run.scratch<float>(shape);
          launch(run, matmul<float, float>, read<float>{at}, read<float>{two.all()},
                 write<float>{next}, 1, 1);
          at = next;
          const auto from = static_cast<std::size_t>(i) * next.size();
          launch(run.aside(), matmul<float, float>, read<float>{at}, read<float>{two.all()},
                 write<float>{all.subview(from, next.size())}, 1, 1);
        }
      }};
  replay_cache cache{here.opened, options};
  std::vector<float> values{1, 3, 5};
  for (int i = 0; i < 3; ++i) {
    const step_result ran = cache.run(here.work, chain, {x.from_host(values)});
    seen.sums = read_back<float>(here.work, ran[sums].get());
  }
  seen.counts = cache.counts();
  return seen;
}

const std::vector<float> expected_sums{4, 12, 20, 8, 24, 40, 16, 48, 80, 32, 96, 160};

TEST_P(branches_on, hold_what_a_body_enqueues_aside) {
  const aside_run seen = run_aside(on_, {});
  EXPECT_EQ(seen.sums, expected_sums);
  EXPECT_EQ(seen.streams.size(), 2U);
  EXPECT_EQ(seen.counts.captured, 1U);
  EXPECT_EQ(seen.counts.replayed, 2U);
}

TEST_P(branches_on, are_left_out_where_nobody_wants_them) {
  const aside_run chained = run_aside(on_, {.branches = false});
  EXPECT_EQ(chained.sums, expected_sums);
  EXPECT_EQ(chained.streams.size(), 1U);
  EXPECT_EQ(chained.counts.replayed, 2U);
  const aside_run eager = run_aside(on_, {.record = false});
  EXPECT_EQ(eager.sums, expected_sums);
  EXPECT_EQ(eager.streams.size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(devices, branches_on, testing::ValuesIn(devices_under_test()),
                         [](const auto& of) { return test_name(of.param); });

}  // namespace
}  // namespace reprise::test
