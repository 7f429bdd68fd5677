#include "reprise/device/external_resource.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/base/mutex.hpp"
#include "reprise/device/host_thread.hpp"

namespace reprise {

struct external_resource::state {
  struct user {
    std::string name;
    std::function<void()> let_go;    // null: was asked
    std::weak_ptr<const void> uses;  // alive while its graph or a launch is
  };

  // Those that are left.
  std::vector<std::string> left() {
    const std::lock_guard lock{guard};
    std::erase_if(users, [](const user& u) { return u.uses.expired(); });
    std::vector<std::string> names;
    for (const user& u : users) names.push_back(u.name);
    return names;
  }

  void ask_all() {
    for (;;) {
      std::function<void()> let_go;
      {
        const std::lock_guard lock{guard};
        const auto next =
            std::ranges::find_if(users, [](const user& u) { return u.let_go != nullptr; });
        if (next == users.end()) return;
        let_go = std::exchange(next->let_go, nullptr);
      }
      let_go();
    }
  }

  device_ref device;
  std::string name;
  std::function<void()> release;  // null: has been called
  mutex guard;                    // of the users
  std::vector<user> users;
};

external_resource::external_resource(device_ref device, std::string name,
                                     std::function<void()> release)
    : state_{new state{device, std::move(name), std::move(release), {}, {}}} {}

external_resource::~external_resource() {
  try {
    release(std::chrono::seconds{2});
  } catch (const error& failure) {
    report_error(failure.what());
  }
}

void external_resource::used_by(stream_ref captured, std::string user, std::function<void()> let_go,
                                std::source_location place) {
  if (!captured.capturing()) {
    throw usage_error{fmt::format(
        "resource '{}': '{}' uses it outside of a capture ({}); eager work is over when its "
        "stream is synchronised, so only recorded work is told",
        state_->name, user, place_text(place))};
  }
  const auto uses = std::make_shared<const int>(0);
  captured.device().api().keep(captured.id(), uses);
  const std::lock_guard lock{state_->guard};
  state_->users.push_back({std::move(user), std::move(let_go), uses});
}

std::size_t external_resource::users() const {
  return state_->left().size();
}

void external_resource::release(std::chrono::milliseconds limit, std::source_location place) {
  if (state_->release == nullptr) return;
  state_->ask_all();
  const auto end = host_time(state_->device) + limit;
  std::vector<std::string> left = state_->left();
  for (; !left.empty() && host_time(state_->device) < end; left = state_->left()) {
    pause(state_->device);
    state_->device.api().close_finished();
  }
  if (!left.empty()) {
    std::string names;
    for (const std::string& user : left) names += (names.empty() ? "'" : ", '") + user + "'";
    throw usage_error{fmt::format(
        "resource '{}' is still used by {} after {} ms ({}); let their launches end, and "
        "release it again",
        state_->name, names, limit.count(), place_text(place))};
  }
  std::exchange(state_->release, nullptr)();
}

}  // namespace reprise
