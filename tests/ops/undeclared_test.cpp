// The simulator does not believe declarations: whatever a launch of a built-in kernel leaves out,
// it finds, because the body touches it all the same.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "reprise/device/undeclaring.hpp"
#include "reprise/sim/device.hpp"
#include "tests/ops/every_kernel.hpp"
#include "tests/support/observe.hpp"

namespace reprise::test {
namespace {

// Launches each call on a simulated GPU, once with all it declares and once without each access.
class forgetful {
 public:
  std::span<std::byte> beside;
  std::map<kernel_id, std::size_t> accesses;  // that were left out, by kernel

  template <class... A>
  void run(const kernel<void(A...)>& k, std::type_identity_t<A>... arguments) {
    constexpr std::size_t declared = (std::size_t{0} + ... + (is_access<A> ? 1 : 0));
    // A kernel's larger sizes say nothing that its first does not.
    if (!seen_.insert(k.id()).second) return;
    EXPECT_EQ(found_without(k, declared, arguments...), sim::finding_kinds) << k.text();
    for (std::size_t i = 0; i < declared; ++i) {
      EXPECT_EQ(found_without(k, i, arguments...),
                static_cast<std::size_t>(sim::finding_kind::undeclared_access))
          << k.text() << " without access " << i;
      ++accesses[k.id()];
    }
  }

 private:
  // The kind of the first finding, `finding_kinds` where there is none.
  template <class... A>
  std::size_t found_without(const kernel<void(A...)>& k, std::size_t left_out,
                            const A&... arguments) {
    const auto seen = std::make_shared<sim::journal>();
    const auto plan = std::make_shared<dropped_access>();
    plan->drop(k.name(), left_out);
    {
      auto bare = undeclaring(sim::open_adversary({.seed = 1, .into = seen}), plan);
      auto table = resolve_kernels(kernels_, bare->traits());
      const device opened{std::move(bare), std::move(table)};
      const stream s{opened};
      pool memory{opened, "arguments"};
      std::vector<block> held;
      launch(s, k, on_device(arguments, s, memory, held)...);
      try {
        s.synchronize();
      } catch (const device_error& finding) {
        EXPECT_TRUE(has(finding.what(), k.name())) << finding.what();
      }
    }
    return seen->findings.empty() ? sim::finding_kinds
                                  : static_cast<std::size_t>(seen->findings.front().kind);
  }

  template <class T>
  static view<T> moved(view<T> from, stream_ref s, pool& memory, std::vector<block>& held) {
    block& made = held.emplace_back(memory, from.bytes(), s);
    copy_bytes(s, reinterpret_cast<const std::byte*>(from.data()), made.data(), from.bytes());
    return {reinterpret_cast<T*>(made.data()), from.size()};
  }
  template <class T>
  static T on_device(const T& scalar, stream_ref, pool&, std::vector<block>&) {
    return scalar;
  }
  template <class T>
  static read<T> on_device(const read<T>& a, stream_ref s, pool& memory, std::vector<block>& held) {
    return read<T>{moved(view<const T>{a}, s, memory, held)};
  }
  template <class T>
  static write<T> on_device(const write<T>& a, stream_ref s, pool& memory,
                            std::vector<block>& held) {
    return write<T>{moved(view<T>{a}, s, memory, held)};
  }
  template <class T>
  static inout<T> on_device(const inout<T>& a, stream_ref s, pool& memory,
                            std::vector<block>& held) {
    return inout<T>{moved(view<T>{a}, s, memory, held)};
  }

  kernel_registry kernels_ = builtin_kernels();
  std::set<kernel_id> seen_;
};

TEST(an_access_that_a_launch_leaves_out, is_found_for_every_kernel_and_each_of_its_accesses) {
  forgetful runner;
  run_every_kernel(runner);
  const kernel_registry kernels = builtin_kernels();
  for (const cell_row& row : kernels.rows()) {
    EXPECT_GT(runner.accesses[row.id], 0U) << row.kernel;
  }
}

}  // namespace
}  // namespace reprise::test
