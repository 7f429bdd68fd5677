// Small steps for the tests of this room, over kernels that every device has.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reprise/kernel/launch.hpp"
#include "reprise/ops/matmul.hpp"
#include "reprise/replay/cache.hpp"
#include "tests/support/devices.hpp"

namespace reprise::test {

template <class T>
std::vector<T> read_back(stream_ref stream, view<const T> from) {
  std::vector<T> host(from.size());
  copy(stream, read<T>{from}, write<T>{view<T>{host.data(), host.size()}});
  stream.synchronize();
  return host;
}

template <class T>
void upload(stream_ref stream, const std::vector<T>& from, view<T> to) {
  copy(stream, read<T>{view<const T>{from.data(), from.size()}}, write<T>{to});
  stream.synchronize();
}

// A device with a stream, a pool and counts of every call; "cpu" or a GPU.
class bench {
 public:
  explicit bench(const std::string& spec)
      : opened{open_device(spec, {.threads = 1, .counts = calls})} {}

  std::shared_ptr<call_counts> calls = std::make_shared<call_counts>();
  device opened;
  stream work{opened};
  pool memory{opened, "test"};
};

// y = a x, for x of any length: one matrix product with a 1x1 matrix.
class scaling {
 public:
  scaling(pool& memory, stream_ref stream, float a) : factor_{memory, 1, stream} {
    set(stream, a);
    weight.value = as_tensor(factor_.all());
  }

  void set(stream_ref stream, float a) { upload(stream, {a}, factor_.all()); }
  // Moves the weight to new memory, as a reload does.
  void move(pool& memory, stream_ref stream, float a) {
    buffer<float> moved{memory, 1, stream};
    factor_ = std::move(moved);
    set(stream, a);
    weight.value = as_tensor(factor_.all());
  }

  parameter weight;
  int runs = 0;  // of the body, in whatever way

 private:
  buffer<float> factor_;

 public:
  signature declared{"scaling"};
  const input<float> x = declared.in<float>("x", {any, 1});
  const output<float> y = declared.out<float>("y");
  step what = make();

 private:
  step make() {
    declared.uses("factor", weight);
    return step{declared, [this](step_scope& run) {
                  ++runs;
                  launch(run, matmul<float, float>, read(run[x]),
                         read(elements_of<float>(weight.value)), write(run.make(y, run.shape(x))),
                         1, 1);
                }};
  }
};

// total += x, and the new total comes out.
class adding {
 public:
  adding(pool& memory, stream_ref stream, std::size_t length)
      : total{memory, length, stream}, one_{memory, 1, stream} {
    upload(stream, std::vector<float>(length, 0.0F), total.all());
    upload(stream, {1.0F}, one_.all());
    declared.state("total", as_tensor(total.all()));
  }

  buffer<float> total;

 private:
  buffer<float> one_;

 public:
  signature declared{"adding"};
  const input<float> x = declared.in<float>("x", {any, 1});
  const output<float> sum = declared.out<float>("sum");

  step make() {
    return step{declared, [this](step_scope& run) {
                  launch(run, matmul_add<float, float>, read(run[x]), read(one_), inout(total), 1,
                         1);
                  copy(run, read(total), write(run.make(sum, run.shape(x))));
                }};
  }
};

}  // namespace reprise::test
