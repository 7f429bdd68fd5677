// The checked body of every built-in kernel: the bits of the generic body, no byte beside what the
// launch declared, and something of each view. A kernel that is missing here fails the test.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <span>

#include "reprise/device/cpu_call.hpp"
#include "reprise/device/touch_log.hpp"
#include "tests/ops/every_kernel.hpp"

namespace reprise::test {
namespace {

using bytes = std::vector<std::byte>;

struct declared {
  std::span<std::byte> span;
  bool reads = false;
  bool writes = false;
};

template <class T>
declared declared_by(const read<T>& a) {
  return {{reinterpret_cast<std::byte*>(const_cast<T*>(a.data())), a.bytes()}, true, false};
}
template <class T>
declared declared_by(const write<T>& a) {
  return {{reinterpret_cast<std::byte*>(a.data()), a.bytes()}, false, true};
}
template <class T>
declared declared_by(const inout<T>& a) {
  return {{reinterpret_cast<std::byte*>(a.data()), a.bytes()}, true, true};
}

bool within(const touched_range& range, const declared& what) {
  return (range.writes ? what.writes : what.reads) && range.begin >= what.span.data() &&
         range.begin + range.bytes <= what.span.data() + what.span.size();
}

kernel_table table_for(const kernel_registry& kernels, const char* arch) {
  device_traits traits;
  traits.name = arch;
  traits.arch_chain = {arch};
  return {kernels, traits};
}

// Both bodies of a kernel, run on the same bytes.
class comparison {
 public:
  // Bytes that a body changes and no view names (switch_nodes).
  std::span<std::byte> beside;
  std::map<kernel_id, std::string> compared;

  template <class... A>
  void run(const kernel<void(A...)>& k, std::type_identity_t<A>... arguments) {
    compared[k.id()] = k.text();
    std::vector<declared> views;
    const auto declare = [&](const auto& argument) {
      if constexpr (is_access<std::remove_cvref_t<decltype(argument)>>) {
        views.push_back(declared_by(argument));
      }
    };
    (declare(arguments), ...);

    const std::vector<bytes> before = contents(views);
    const auto body_of = [&](const kernel_table& table) {
      const cell_row& cell = table.resolve(k.id(), k.name());
      EXPECT_EQ(cell.workspace, nullptr) << k.text() << ": give it one here";
      const detail::packed_call<A...> packed{cell.body, detail::make_pack(arguments...)};
      cpu_call call{{}, {}};
      cell.invoke(&call, reinterpret_cast<const std::byte*>(&packed));
    };
    body_of(generic_);
    const std::vector<bytes> expected = contents(views);
    put_back(before, views);
    EXPECT_NE(before, expected) << k.text() << " changed nothing";

    log_.clear();
    {
      const noting_touches here{log_};
      body_of(checked_);
    }
    EXPECT_EQ(contents(views), expected) << k.text();
    expect_declared(k.text(), views);
  }

 private:
  std::vector<bytes> contents(const std::vector<declared>& views) const {
    std::vector<bytes> all{bytes(beside.begin(), beside.end())};
    for (const declared& each : views) all.emplace_back(each.span.begin(), each.span.end());
    return all;
  }

  void put_back(const std::vector<bytes>& from, const std::vector<declared>& views) const {
    std::ranges::copy(from[0], beside.begin());
    for (std::size_t i = 0; i < views.size(); ++i) {
      std::ranges::copy(from[i + 1], views[i].span.begin());
    }
  }

  void expect_declared(const std::string& name, const std::vector<declared>& views) {
    const auto touched = log_.taken();
    for (const touched_range& range : touched) {
      EXPECT_TRUE(std::ranges::any_of(views, [&](const auto& v) { return within(range, v); }))
          << name << (range.writes ? " wrote " : " read ") << range.bytes
          << " bytes that were not declared";
    }
    for (std::size_t i = 0; i < views.size(); ++i) {
      for (const bool writes : {false, true}) {
        if (!(writes ? views[i].writes : views[i].reads)) continue;
        EXPECT_TRUE(std::ranges::any_of(touched,
                                        [&](const touched_range& range) {
                                          return range.writes == writes && within(range, views[i]);
                                        }))
            << name << ": view " << i << " was declared and not touched";
      }
    }
  }

  kernel_registry kernels_ = builtin_kernels();
  kernel_table generic_ = table_for(kernels_, "generic");
  kernel_table checked_ = table_for(kernels_, checked_arch);
  touch_log log_;
};

TEST(checked_bodies, give_the_bits_of_the_generic_ones_and_touch_what_was_declared) {
  comparison both;
  run_every_kernel(both);
  const kernel_registry kernels = builtin_kernels();
  for (const cell_row& row : kernels.rows()) {
    EXPECT_TRUE(both.compared.contains(row.id)) << row.kernel << " is compared nowhere: add it";
  }
}

}  // namespace
}  // namespace reprise::test
