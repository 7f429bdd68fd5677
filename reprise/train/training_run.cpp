#include "reprise/train/training_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/telemetry/log.hpp"
#include "reprise/train/part_events.hpp"

namespace reprise {

namespace {

std::uint64_t next_run() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

// A part and what it holds, each once.
void gather(const run_part& part, std::vector<run_part>& all) {
  if (std::ranges::find(all, part) != all.end()) return;
  all.push_back(part);
  const auto* const network = std::get_if<graphed_network*>(&part);
  if (network == nullptr || *network == nullptr) return;
  for (const run_part& child : part_events::children_of(**network)) gather(child, all);
}

std::string text_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& failed) {
    return failed.what();
  } catch (...) {
    return "something that is no exception";
  }
}

}  // namespace

training_run::~training_run() {
  failed();
}

// Of what a part has recorded in a run before, too; a part may be cleared by the one that holds it.
std::exception_ptr training_run::clear_all(std::source_location place) {
  return try_each(all_, [&](const run_part& one) {
    part_events::of_run(id_, one, [&](auto& part) { part_events::clear(part, place); });
  });
}

void training_run::start(site at) {
  all_.clear();
  for (const run_part& one : parts_) gather(one, all_);
  id_ = next_run();
  for (const run_part& one : all_) {
    part_events::with(one, [&](auto& part) { part_events::take(part, id_); });
  }
  if (const std::exception_ptr first = clear_all(at.place)) {
    id_ = 0;
    std::rethrow_exception(first);
  }
  for (const run_part& one : all_) {
    part_events::of_run(id_, one, [&](auto& part) { part_events::open(part, at); });
  }
}

void training_run::batch_start() {
  if (id_ == 0) return;
  for (const run_part& one : all_) {
    part_events::of_run(id_, one, [](auto& part) { part_events::batch_start(part); });
  }
}

void training_run::end(std::source_location place) {
  if (id_ == 0) return;
  for (const run_part& one : all_) {
    part_events::of_run(id_, one, [](auto& part) { part_events::close(part); });
  }
  const std::exception_ptr first = clear_all(place);
  id_ = 0;
  if (first != nullptr && !REPRISE_MUTANT(failing_drain_is_swallowed)) {
    std::rethrow_exception(first);
  }
}

void training_run::failed(std::source_location place) noexcept {
  if (id_ == 0) return;
  try {
    const std::exception_ptr first = clear_all(place);
    id_ = 0;
    if (first == nullptr) return;
    log_line(fmt::format("a run that failed could not wait for all that it had queued: {}",
                         text_of(first)));
  } catch (const std::exception& thrown) {
    report_error(thrown.what());
  }
}

}  // namespace reprise
