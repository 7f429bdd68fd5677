#include "reprise/device/undeclaring.hpp"

#include <algorithm>

#include "reprise/device/forwarding.hpp"

namespace reprise {

void dropped_access::drop(std::string label, std::size_t index) {
  const std::lock_guard lock{guard_};
  chosen_.emplace_back(std::move(label), index);
}

std::vector<access> dropped_access::left_of(const work& what) {
  std::vector<access> left;
  const std::lock_guard lock{guard_};
  for (std::size_t i = 0; i < what.accesses.size(); ++i) {
    const bool gone = std::ranges::any_of(chosen_, [&](const auto& chosen) {
      return chosen.first == what.label && chosen.second == i;
    });
    if (gone) {
      ++dropped_;
    } else {
      left.push_back(what.accesses[i]);
    }
  }
  return left;
}

namespace {

class undeclaring_device final : public forwarding_device {
 public:
  undeclaring_device(std::unique_ptr<device_api> inner, std::shared_ptr<dropped_access> plan)
      : forwarding_device{std::move(inner)}, plan_{std::move(plan)} {}

  node_id submit(stream_id stream, const work& what) override {
    const std::vector<access> left = plan_->left_of(what);
    work less = what;
    less.accesses = left;
    return inner().submit(stream, less);
  }
  void set_parameters(executable_id executable, node_id node, const work& what) override {
    const std::vector<access> left = plan_->left_of(what);
    work less = what;
    less.accesses = left;
    inner().set_parameters(executable, node, less);
  }

 private:
  std::shared_ptr<dropped_access> plan_;
};

}  // namespace

std::unique_ptr<device_api> undeclaring(std::unique_ptr<device_api> inner,
                                        std::shared_ptr<dropped_access> plan) {
  return std::make_unique<undeclaring_device>(std::move(inner), std::move(plan));
}

}  // namespace reprise
