#include "reprise/nn/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/ops/philox.hpp"
#include "reprise/ops/random_uniform.hpp"

namespace reprise::nn {

namespace {

// Every parameter begins where vector loads may.
constexpr std::size_t alignment = 64;
// Apart from the blocks that steps draw from a counter of the same seed.
constexpr std::uint64_t of_parameters = std::uint64_t{1} << 63;

// The host's memory as a copy takes it.
read<float> read_of(std::span<const float> host) {
  return read<float>{view<const float>{host.data(), host.size()}};
}

struct fill_with {
  std::uint64_t seed;
  std::uint64_t which;
  std::span<float> values;

  void operator()(const constant& c) const { std::ranges::fill(values, c.value); }
  void operator()(const uniform& u) const {
    for (std::size_t i = 0; i < values.size(); i += 4) {
      const ops::philox_words words = ops::philox(seed, i / 4, of_parameters + which);
      const std::size_t here = std::min<std::size_t>(4, values.size() - i);
      for (std::size_t j = 0; j < here; ++j) {
        values[i + j] = (2 * ops::uniform_of(words.at[j]) - 1) * u.bound;
      }
    }
  }
};

}  // namespace

uniform uniform_over(std::int64_t terms) {
  if (terms < 1) {
    throw usage_error{fmt::format(
        "uniform_over({}): a layer sums over one input at least; give its count", terms)};
  }
  return {static_cast<float>(1 / std::sqrt(static_cast<double>(terms)))};
}

parameter_specs linear_parameters(const std::string& name, std::int64_t n, std::int64_t k) {
  return {{name + ".weight", {n, k}, uniform_over(k)}, {name + ".bias", {n}, uniform_over(k)}};
}

parameter_specs norm_parameters(const std::string& name, std::int64_t width) {
  return {{name + ".gain", {width}, constant{1}}, {name + ".bias", {width}, constant{0}}};
}

parameter_specs joined(std::initializer_list<parameter_specs> lists) {
  parameter_specs all;
  for (const parameter_specs& list : lists) std::ranges::copy(list, std::back_inserter(all));
  return all;
}

parameter_set::parameter_set(pool& into, stream_ref stream, parameter_specs specs,
                             std::uint64_t seed)
    : specs_{std::move(specs)}, begins_{0} {
  std::set<std::string_view> names;
  for (const parameter_spec& one : specs_) {
    const auto extents =
        std::span{one.shape.extent}.first(static_cast<std::size_t>(one.shape.rank));
    if (std::ranges::any_of(extents, [](std::int64_t e) { return e < 0; })) {
      throw usage_error{fmt::format("parameter '{}': its shape {} is open; give every extent",
                                    one.name, to_string(one.shape))};
    }
    if (!names.insert(one.name).second) {
      throw usage_error{
          fmt::format("parameter '{}' is there twice; give each a name of its own", one.name)};
    }
    const std::size_t end = begins_.back() + one.shape.count();
    begins_.push_back((end + alignment - 1) / alignment * alignment);
  }
  std::vector<float> values(elements());
  for (std::size_t i = 0; i < size(); ++i) {
    std::visit(fill_with{seed, i, std::span{values}.subspan(begin(i), end(i) - begin(i))},
               specs_[i].begins);
  }
  memory_ = buffer<float>{into, 2 * elements(), stream};
  copy(stream, read_of(values), write<float>{this->values()});
  fill(stream, write<float>{gradients()}, 0.0F);
  parameters_.resize(size());
  for (std::size_t i = 0; i < size(); ++i) {
    const auto part = [&](view<float> all) {
      return as_tensor(all.subview(begin(i), end(i) - begin(i)), specs_[i].shape);
    };
    parameters_[i].value = part(this->values());
    parameters_[i].grad = part(gradients());
  }
}

std::size_t parameter_set::place_of(std::string_view name) const noexcept {
  const auto found = std::ranges::find(specs_, name, &parameter_spec::name);
  return static_cast<std::size_t>(found - specs_.begin());
}

parameter* parameter_set::find(std::string_view name) noexcept {
  const std::size_t i = place_of(name);
  return i == size() ? nullptr : &parameters_[i];
}

parameter& parameter_set::at(std::string_view name) {
  if (parameter* const found = find(name)) return *found;
  throw usage_error{
      fmt::format("there is no parameter '{}' among {}; give the name of one", name, size())};
}

void parameter_set::drop_gradients() noexcept {
  for (parameter& one : parameters_) one.has_grad = false;
}

std::vector<stored_parameter> parameter_set::to_host(stream_ref stream) const {
  std::vector<float> all(elements());
  copy(stream, read<float>{values()}, write<float>{view<float>{all.data(), all.size()}});
  stream.synchronize();
  std::vector<stored_parameter> stored;
  for (std::size_t i = 0; i < size(); ++i) {
    const auto at = [&](std::size_t element) {
      return all.begin() + static_cast<std::ptrdiff_t>(element);
    };
    stored.push_back({specs_[i].name, specs_[i].shape, {at(begin(i)), at(end(i))}});
  }
  return stored;
}

void parameter_set::require_fit(std::span<const stored_parameter> stored) const {
  std::set<std::string_view> seen;
  for (const stored_parameter& one : stored) {
    const std::size_t i = place_of(one.name);
    if (i == size()) {
      throw usage_error{fmt::format(
          "parameter '{}' is stored and unknown here; give values of one network", one.name)};
    }
    if (one.shape != specs_[i].shape || one.values.size() != one.shape.count()) {
      throw usage_error{fmt::format(
          "parameter '{}' is stored as {} values of shape {} and is {} "
          "here; give values of one network",
          one.name, one.values.size(), to_string(one.shape), to_string(specs_[i].shape))};
    }
    if (!seen.insert(one.name).second) {
      throw usage_error{fmt::format("parameter '{}' is stored twice; give it once", one.name)};
    }
  }
  for (const parameter_spec& one : specs_) {
    if (!seen.contains(one.name)) {
      throw usage_error{
          fmt::format("parameter '{}' is not stored; give values of one network", one.name)};
    }
  }
}

void parameter_set::from_host(stream_ref stream, std::span<const stored_parameter> stored) {
  require_fit(stored);
  for (const stored_parameter& one : stored) {
    parameter& into = parameters_[place_of(one.name)];
    const version_change changes{into.version};
    copy(stream, read_of(one.values), write<float>{elements_of<float>(into.value)});
  }
}

}  // namespace reprise::nn
