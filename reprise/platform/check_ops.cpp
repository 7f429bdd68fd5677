#include "reprise/platform/check_ops.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "reprise/platform/op_cases.hpp"
#include "reprise/sim/device.hpp"

namespace reprise {

namespace {

bool is_reference(const cell_row& row) {
  return row.device == device_kind::cpu && row.arch == "generic" && row.variant == "default";
}

device open_reference(const kernel_registry& kernels) {
  device_traits traits = sim::cpu_traits();
  traits.name = "cpu generic";
  traits.arch_chain = {"generic"};
  auto implementation = sim::open_in_order(std::move(traits));
  auto table = resolve_kernels(kernels.only(is_reference), implementation->traits());
  return device{std::move(implementation), std::move(table)};
}

}  // namespace

bool ops_check::within() const {
  return !results.empty() &&
         std::ranges::all_of(results, [](const parity_result& r) { return r.seen.within; });
}

ops_check check_cells(const kernel_registry& kernels, const open_with& open,
                      const each_case& cases) {
  ops_check made;
  std::set<std::pair<std::string, std::string>> pairs;  // arch and variant
  std::map<kernel_id, std::string> left;
  std::vector<device> opened;
  {
    const device empty = open({}, {});
    const device_traits& traits = device_ref{empty}.traits();
    made.device = traits.name;
    for (const cell_row& row : kernels.rows()) {
      if (!why_not(row, traits).empty()) continue;
      pairs.emplace(row.arch, row.variant);
      left[row.id] = row.kernel;
    }
  }
  for (const auto& [arch, variant] : pairs) {
    const auto of_the_pair = [&](const cell_row& row) {
      return row.arch == arch && row.variant == variant;
    };
    opened.push_back(open(kernels.only(of_the_pair), {{.variant = variant}}));
  }

  const device reference = open_reference(kernels);
  cases([&](const op_case& one) {
    left.erase(one.kernel);
    const case_outputs wanted = run_case(one, reference);
    for (const device& on : opened) {
      if (!device_ref{on}.kernels()->has(one.kernel)) continue;
      std::ranges::move(compare_case(one, wanted, on), std::back_inserter(made.results));
    }
  });
  for (auto& [id, text] : left) made.not_compared.push_back(std::move(text));
  return made;
}

ops_check check_ops(std::string_view spec) {
  const auto open = [&](const kernel_registry& kernels, const std::vector<variant_wish>& wishes) {
    return open_device(spec, {.variants = wishes}, kernels);
  };
  return check_cells(builtin_kernels(), open, each_builtin_op_case);
}

}  // namespace reprise
