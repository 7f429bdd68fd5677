// The checked body of every built-in kernel: the bits of the generic body, no byte beside what the
// launch declared, and something of each view. A kernel that is missing here fails the test.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <span>

#include "reprise/device/cpu_call.hpp"
#include "reprise/device/touch_log.hpp"
#include "reprise/ops/argmax.hpp"
#include "reprise/ops/attention.hpp"
#include "reprise/ops/embedding.hpp"
#include "reprise/ops/matmul.hpp"
#include "reprise/ops/random.hpp"
#include "reprise/ops/random_uniform.hpp"
#include "reprise/ops/rms_norm.hpp"
#include "reprise/ops/rope.hpp"
#include "reprise/ops/sample.hpp"
#include "reprise/ops/swiglu.hpp"
#include "reprise/ops/switch_nodes.hpp"
#include "reprise/replay/stage_inputs.hpp"
#include "tests/ops/bench.hpp"

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

template <class T>
view<T> all(std::vector<T>& values) {
  return {values.data(), values.size()};
}
template <class T>
view<const T> all(const std::vector<T>& values) {
  return {values.data(), values.size()};
}

using tokens = std::vector<std::int32_t>;

template <class A, class W>
void compare_matmuls(comparison& both) {
  for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
           {1, 1, 1}, {1, 19, 37}, {2, 5, 16}, {7, 33, 50}, {70, 3, 20}}) {
    const auto x = random_values<A>(static_cast<std::size_t>(m * k), 1);
    const auto w = random_values<W>(static_cast<std::size_t>(n * k), 2);
    auto y = random_values<A>(static_cast<std::size_t>(m * n), 3);
    both.run(matmul<A, W>, read<A>{all(x)}, read<W>{all(w)}, write<A>{all(y)}, n, k);
    both.run(matmul_add<A, W>, read<A>{all(x)}, read<W>{all(w)}, inout<A>{all(y)}, n, k);
  }
}

template <class A, class W>
void compare_row_ops(comparison& both) {
  for (const std::size_t width : {1U, 7U, 192U, 4100U}) {
    const auto x = random_values<A>(3 * width, 4);
    const auto gain = random_values<W>(width, 5);
    std::vector<A> y(3 * width);
    both.run(rms_norm<A, W>, read<A>{all(x)}, read<W>{all(gain)}, write<A>{all(y)},
             static_cast<std::int64_t>(width), 1e-5F);
    const auto table = random_values<W>(11 * width, 6);
    const tokens chosen{10, -1, 3, 11};  // two of them are no tokens
    std::vector<A> rows(4 * width, narrow<A>(9.0F));
    both.run(embedding<A, W>, read<std::int32_t>{all(chosen)}, read<W>{all(table)},
             write<A>{all(rows)}, static_cast<std::int64_t>(width));
  }
}

template <class A, class C>
void compare_attention(comparison& both) {
  for (const attention_shape& shape :
       std::vector<attention_shape>{{6, 2, 32, 70}, {1, 1, 8, 5}, {4, 4, 40, 130}}) {
    const tokens slots{0, 1, 1, 7, 0};  // one is padding
    const auto last = static_cast<std::int32_t>(shape.capacity - 1);
    const tokens positions{0, last, last / 2, 0, last - 1};
    const auto q =
        random_values<A>(slots.size() * static_cast<std::size_t>(shape.heads * shape.head_dim), 7);
    const auto k = random_values<A>(
        slots.size() * static_cast<std::size_t>(shape.kv_heads * shape.head_dim), 8);
    const auto v = random_values<A>(k.size(), 9);
    const auto cache =
        static_cast<std::size_t>(2 * shape.kv_heads * shape.capacity * shape.head_dim);
    auto keys = random_values<C>(cache, 10);
    auto values = random_values<C>(cache, 11);
    std::vector<A> out(q.size(), narrow<A>(9.0F));
    both.run(cache_append<A, C>, read<A>{all(k)}, read<A>{all(v)}, read<std::int32_t>{all(slots)},
             read<std::int32_t>{all(positions)}, write<C>{all(keys)}, write<C>{all(values)}, shape);
    both.run(attention<A, C>, read<A>{all(q)}, read<C>{view<C>{all(keys)}},
             read<C>{view<C>{all(values)}}, read<std::int32_t>{all(slots)},
             read<std::int32_t>{all(positions)}, write<A>{all(out)}, shape);
  }
}

template <class A>
void compare_elementwise(comparison& both) {
  for (const std::size_t count : {1U, 31U, 1000U}) {
    const auto gate = random_values<A>(count, 12, 8.0F);
    const auto up = random_values<A>(count, 13);
    std::vector<A> out(count);
    both.run(swiglu<A>, read<A>{all(gate)}, read<A>{all(up)}, write<A>{all(out)});
    both.run(random_normal<A>, write<A>{all(out)}, std::uint64_t{9}, std::uint64_t{3}, 0.5F);
  }
  for (const std::int64_t head_dim : {8, 32, 320}) {
    const tokens positions{0, 1, 100000};
    auto x = random_values<A>(static_cast<std::size_t>(3 * 2 * head_dim), 14);
    const auto frequencies = rope_inverse_frequencies(head_dim, 10000.0);
    both.run(rope<A>, inout<A>{all(x)}, read<std::int32_t>{all(positions)},
             read<float>{all(frequencies)}, 2, head_dim);
  }
}

void compare_choices(comparison& both) {
  for (const std::size_t width : {2U, 255U, 5000U}) {
    const auto logits = random_values<float>(3 * width, 15, 6.0F);
    tokens out(3, -1);
    both.run(argmax, read<float>{all(logits)}, write<std::int32_t>{all(out)},
             static_cast<std::int64_t>(width));
    out.assign(3, -1);
    const std::vector<float> temperatures{0.7F, 1.0F, 0.0F};
    const std::vector<float> top_ps{0.9F, 1.0F, 0.5F};
    const std::vector<std::uint64_t> seeds{5, 6, 7};
    const std::vector<std::uint64_t> counters{1, 2, 3};
    both.run(sample, read<float>{all(logits)}, read<float>{all(temperatures)},
             read<float>{all(top_ps)}, read<std::uint64_t>{all(seeds)},
             read<std::uint64_t>{all(counters)}, write<std::int32_t>{all(out)},
             static_cast<std::int64_t>(width));
  }
  const std::vector<std::uint64_t> base{42, 100};
  std::vector<float> uniform(1003, -1.0F);
  both.run(random_uniform, read<std::uint64_t>{all(base)}, write<float>{all(uniform)},
           std::uint64_t{7});
}

void compare_switches(comparison& both) {
  std::array<std::uint8_t, 3> enabled{0, 1, 0};
  std::vector<std::uint64_t> nodes;
  for (const auto& each : enabled) nodes.push_back(reinterpret_cast<std::uintptr_t>(&each));
  const std::vector<std::uint8_t> on{1, 0, 200};
  both.beside = std::as_writable_bytes(std::span{enabled});
  both.run(switch_nodes, read<std::uint64_t>{all(nodes)}, read<std::uint8_t>{all(on)});
  both.beside = {};
}

void compare_staging(comparison& both) {
  constexpr std::size_t slot_bytes = stage_header_bytes + 96;
  std::vector<std::uint8_t> ring(2 * slot_bytes);
  for (std::size_t i = 0; i < ring.size(); ++i) ring[i] = static_cast<std::uint8_t>(i * 31);
  const std::uint64_t there = 0b101;  // the second of three segments is not
  std::memcpy(ring.data() + slot_bytes, &there, sizeof there);
  std::vector<std::uint8_t> block(96, 0xee);
  std::vector<std::uint64_t> words{3, 0, 0, 20, 48, 4, 80, 5};
  std::vector<std::uint64_t> consumed{3};
  both.run(stage_inputs, read<std::uint8_t>{view<std::uint8_t>{all(ring)}},
           write<std::uint8_t>{all(block)}, inout<std::uint64_t>{all(words)},
           write<std::uint64_t>{all(consumed)}, slot_bytes, std::uint64_t{2}, std::uint64_t{3});
}

void compare_all(comparison& both) {
  each_pair([&]<class A, class W>(types<A, W>) {
    compare_matmuls<A, W>(both);
    compare_row_ops<A, W>(both);
    compare_attention<A, W>(both);
  });
  compare_elementwise<float>(both);
  compare_elementwise<bf16>(both);
  compare_choices(both);
  compare_switches(both);
  compare_staging(both);
}

TEST(checked_bodies, give_the_bits_of_the_generic_ones_and_touch_what_was_declared) {
  comparison both;
  compare_all(both);
  const kernel_registry kernels = builtin_kernels();
  for (const cell_row& row : kernels.rows()) {
    EXPECT_TRUE(both.compared.contains(row.id)) << row.kernel << " is compared nowhere: add it";
  }
}

}  // namespace
}  // namespace reprise::test
