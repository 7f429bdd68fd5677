// Steps that fork: branches of a run take workspaces of their own, and random draws know no branch.
#include <algorithm>

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

INSTANTIATE_TEST_SUITE_P(devices, branches_on, testing::ValuesIn(devices_under_test()),
                         [](const auto& of) { return test_name(of.param); });

}  // namespace
}  // namespace reprise::test
