#include "reprise/platform/check_sdm.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "reprise/device/enqueue.hpp"
#include "reprise/device/memory.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/platform/platform.hpp"
#include "reprise/sdm/bank.hpp"
#include "reprise/sdm/passes.hpp"

namespace reprise {

namespace {

template <class T>
T as(double value) {
  if constexpr (std::is_same_v<T, bf16>) {
    return narrow<bf16>(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
double as_double(T value) {
  if constexpr (std::is_same_v<T, bf16>) {
    return widen(value);
  } else {
    return value;
  }
}

sdm_error error_of(const char* quantity, const std::vector<double>& is,
                   const std::vector<double>& should) {
  sdm_error error{quantity};
  double largest = 0;
  for (std::size_t i = 0; i < should.size(); ++i) {
    double off = std::abs(is[i] - should[i]);
    if (std::isnan(off)) off = std::numeric_limits<double>::infinity();
    error.absolute = std::max(error.absolute, off);
    largest = std::max(largest, std::abs(should[i]));
  }
  error.relative = error.absolute == 0 ? 0 : error.absolute / largest;  // infinite over 0
  return error;
}

// Buffers that live as long as the run.
class desk {
 public:
  desk(device& on) : memory_{on}, stream_{on} {}

  site at() const { return stream_; }

  template <class T>
  view<T> room(std::size_t count) {
    kept_.emplace_back(memory_, count * sizeof(T), stream_);
    return {reinterpret_cast<T*>(kept_.back().data()), count};
  }
  template <class T>
  view<T> room(const dims& shape) {
    return room<T>(shape.count());
  }
  template <class T, class From>
  view<T> put(const std::vector<From>& values) {
    std::vector<T> host(values.size());
    std::ranges::transform(values, host.begin(), [](From one) { return as<T>(one); });
    const view<T> to = room<T>(values.size());
    copy(stream_, read<T>{view<const T>{host.data(), host.size()}}, write<T>{to});
    stream_.synchronize();
    return to;
  }
  template <class T>
  std::vector<T> raw(view<T> from) {
    std::vector<T> host(from.size());
    copy(stream_, read<T>{from}, write<T>{view<T>{host.data(), host.size()}});
    stream_.synchronize();
    return host;
  }
  template <class T>
  std::vector<double> get(view<T> from) {
    const std::vector<T> host = raw(from);
    std::vector<double> values(host.size());
    std::ranges::transform(host, values.begin(), [](T one) { return as_double(one); });
    return values;
  }

 private:
  pool memory_;
  stream stream_;
  std::vector<block> kept_;
};

// B: the bank's storage, G: its cotangent's.
template <class B, class G>
sdm_run run_case(device& on, const sdm_case& c, std::int64_t chunk) {
  using X = sdm::arithmetic<B>;
  sdm_sizes sizes = c.sizes;
  sizes.chunk = chunk;
  desk d{on};
  const auto named = [&]<class T>(std::string_view, const dims& shape) {
    return d.template room<T>(shape);
  };
  const auto room = [&]<class T>(const dims& shape) { return d.template room<T>(shape); };

  const view<B> bank = d.put<B>(c.bank);
  const std::vector<B> initial = d.raw(bank);
  const sdm_inputs<X> in{d.put<std::int32_t>(c.k_idx),
                         d.put<X>(c.k_val),
                         d.put<X>(c.v),
                         d.put<X>(c.beta),
                         d.put<X>(c.g),
                         d.put<std::int32_t>(c.q_idx),
                         d.put<X>(c.q_val)};
  const view<X> readings = d.room<X>(c.v.size());
  auto context = make_context<B>(sizes, saved_rows::as_stored, named);
  sdm_forward<B>(d.at(), sizes, saved_rows::as_stored, in, context, bank,
                 make_forward_scratch<X>(sizes, room), readings);

  sdm_run result;
  result.name = c.name;
  result.chunk = chunk;
  const auto see = [&](const char* quantity, const std::vector<double>& is,
                       const std::vector<double>& should) {
    result.errors.push_back(error_of(quantity, is, should));
  };
  see("readings", d.get(readings), c.readings);
  see("final_bank", d.get(bank), c.final_bank);

  std::vector<double> above = c.d_final_bank;
  above.resize(c.bank.size());
  const view<G> cotangent = d.put<G>(above);
  const sdm_gradients<X> to{d.room<X>(c.k_val.size()), d.room<X>(c.v.size()),
                            d.room<X>(c.beta.size()), d.room<X>(c.g.size()),
                            d.room<X>(c.q_val.size())};
  sdm_backward<B, G>(d.at(), sizes, saved_rows::as_stored, in, context, bank, d.put<X>(c.dy),
                     cotangent, make_backward_scratch<X>(sizes, room), to);
  see("grad bank", d.get(cotangent), c.d_bank);
  see("grad k_val", d.get(to.k_val), c.d_k_val);
  see("grad v", d.get(to.v), c.d_v);
  see("grad beta", d.get(to.beta), c.d_beta);
  see("grad g", d.get(to.g), c.d_g);
  see("grad q_val", d.get(to.q_val), c.d_q_val);
  const std::vector<B> rewound = d.raw(bank);
  for (std::size_t i = 0; i < initial.size(); ++i) {
    if (std::memcmp(&initial[i], &rewound[i], sizeof(B)) != 0) ++result.not_rewound;
  }
  return result;
}

}  // namespace

bool sdm_run::within() const {
  return not_rewound == 0 && std::ranges::all_of(errors, [this](const sdm_error& e) {
           return e.relative <= tolerance;
         });
}

std::vector<sdm_run> check_sdm(std::string_view device_spec, const std::vector<sdm_case>& cases) {
  device cpu = open_device("cpu");
  device on = open_device(device_spec);
  std::vector<sdm_run> runs;
  for (const sdm_case& c : cases) {
    for (const std::int64_t chunk : c.chunks) {
      const auto add = [&](device& where, const char* storage, double tolerance, sdm_run run) {
        run.device = where.name();
        run.storage = storage;
        run.tolerance = tolerance;
        runs.push_back(std::move(run));
      };
      add(cpu, "f64", 1e-9, run_case<double, double>(cpu, c, chunk));
      add(on, "f32", 2e-5, run_case<float, float>(on, c, chunk));
      add(on, "bf16", 2e-2, run_case<bf16, bf16>(on, c, chunk));
      add(on, "bf16, f32 gradient", 2e-2, run_case<bf16, float>(on, c, chunk));
    }
  }
  return runs;
}

}  // namespace reprise
