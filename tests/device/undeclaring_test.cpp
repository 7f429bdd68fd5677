// The undeclaring decorator: one access of the chosen works is gone, and everything else is there.
// On the CPU, which does not look at declarations.
#include "reprise/device/undeclaring.hpp"

#include "reprise/device/forwarding.hpp"
#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

// Notes what arrives beneath the decorator.
class seeing final : public forwarding_device {
 public:
  seeing(std::unique_ptr<device_api> inner, std::vector<std::vector<access>>& seen)
      : forwarding_device{std::move(inner)}, seen_{seen} {}
  node_id submit(stream_id stream, const work& what) override {
    seen_.emplace_back(what.accesses.begin(), what.accesses.end());
    return forwarding_device::submit(stream, what);
  }
  void set_parameters(executable_id executable, node_id node, const work& what) override {
    seen_.emplace_back(what.accesses.begin(), what.accesses.end());
    forwarding_device::set_parameters(executable, node, what);
  }

 private:
  std::vector<std::vector<access>>& seen_;
};

class undeclaring_of : public testing::Test {
 protected:
  // What the last work declared, by the values that lie there.
  std::string last() const {
    std::string text;
    for (const access& one : seen.back()) {
      text += one.begin == static_cast<view<int>>(x).data() ? 'x' : 'y';
      text += one.writes ? '!' : ' ';
    }
    return text;
  }

  std::vector<std::vector<access>> seen;
  std::shared_ptr<dropped_access> plan = std::make_shared<dropped_access>();
  device opened{undeclaring(std::make_unique<seeing>(open_bare("cpu"), seen), plan)};
  stream work{opened};
  pool memory{opened};
  buffer<int> x{memory, 4, work};
  buffer<int> y{memory, 4, work};
  const access reads_x = access_of(read<int>{x});
  const access writes_y = access_of(write<int>{y});
  const std::function<void(void*)> nothing = [](void*) {};
};

TEST_F(undeclaring_of, nothing_is_everything_passed_on) {
  external(work, "library", {reads_x, writes_y}, nothing);
  EXPECT_EQ(last(), "x y!");
  EXPECT_EQ(plan->dropped(), 0U);
}

TEST_F(undeclaring_of, one_access_leaves_the_others_of_that_work) {
  plan->drop("library", 1);
  external(work, "library", {reads_x, writes_y, reads_x}, nothing);
  EXPECT_EQ(last(), "x x ");
  EXPECT_EQ(plan->dropped(), 1U);
}

TEST_F(undeclaring_of, one_label_leaves_works_of_other_labels) {
  plan->drop("library", 0);
  external(work, "another", {reads_x, writes_y}, nothing);
  EXPECT_EQ(last(), "x y!");
  external(work, "library", {writes_y}, nothing);
  EXPECT_EQ(last(), "");
  EXPECT_EQ(plan->dropped(), 1U);
}

TEST_F(undeclaring_of, an_access_that_is_not_there_changes_nothing) {
  plan->drop("library", 2);
  external(work, "library", {reads_x, writes_y}, nothing);
  EXPECT_EQ(last(), "x y!");
  EXPECT_EQ(plan->dropped(), 0U);
}

TEST_F(undeclaring_of, captured_works_and_of_parameters_that_are_set_later) {
  fill(work, write<int>{x}, 1);
  node_id copied{};
  plan->drop("copy", 0);
  executable step = capture(work, [&](stream_ref c) {
                      copied = copy(c, read<int>{x}, write<int>{y});
                    }).instantiate(work);
  EXPECT_EQ(last(), "y!");
  step.change_copy(copied, read<int>{y}, write<int>{x});
  EXPECT_EQ(last(), "x!");
  EXPECT_EQ(plan->dropped(), 2U);
}

TEST_F(undeclaring_of, a_work_does_not_change_what_it_does) {
  fill(work, write<int>{x}, 7);
  plan->drop("copy", 0);
  plan->drop("copy", 1);
  copy(work, read<int>{x}, write<int>{y});
  EXPECT_EQ(last(), "");
  EXPECT_EQ(read_back(work, y), std::vector<int>(4, 7));
  EXPECT_EQ(plan->dropped(), 4U) << "two of that copy, two of the one that brought it back";
}

}  // namespace
}  // namespace reprise::test
