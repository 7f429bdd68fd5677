#include "reprise/records/multiplexer.hpp"

#include <exception>
#include <optional>
#include <utility>

#include "reprise/base/mutant.hpp"

namespace reprise {

namespace {

// Calls for each, whatever some of them throw; then throws the first of that.
template <class Queues, class Call>
void for_every(Queues&& queues, Call&& call) {
  std::exception_ptr first;
  for (auto&& queue : queues) {
    try {
      call(*queue);
    } catch (...) {
      if (first == nullptr) first = std::current_exception();
      if (REPRISE_MUTANT(failed_sink_stops_the_others)) break;
    }
  }
  if (first != nullptr) std::rethrow_exception(first);
}

// What a queue raises is of the past, and may come while these records wait for room: they are
// handed over all the same, and then the first of it is thrown.
bool push_in_any_case(sink_queue& to, const std::shared_ptr<const record_batch>& batch) {
  std::exception_ptr raised;
  std::optional<bool> took;
  while (!took) {
    try {
      took = to.push(batch);
    } catch (const sink_error&) {
      if (raised == nullptr) raised = std::current_exception();
    }
  }
  if (raised != nullptr) std::rethrow_exception(raised);
  return *took;
}

}  // namespace

void sink_multiplexer::add(std::unique_ptr<record_sink> sink, sink_queue_options options) {
  queues_.push_back(std::make_unique<sink_queue>(std::move(sink), run_, std::move(options)));
}

std::size_t sink_multiplexer::publish(std::span<const tap_record> records) {
  const auto batch = std::make_shared<const record_batch>(records);
  std::size_t took = 0;
  std::vector<sink_queue*> full;
  std::exception_ptr first;
  try {
    for_every(queues_, [&](sink_queue& queue) {
      // What is raised is of the past: these records are still to be handed over.
      try {
        queue.push_if_room(batch) ? void(++took) : full.push_back(&queue);
      } catch (const sink_error&) {
        full.push_back(&queue);
        throw;
      }
    });
  } catch (...) {
    first = std::current_exception();
  }
  try {
    for_every(full, [&](sink_queue& queue) { took += push_in_any_case(queue, batch) ? 1 : 0; });
  } catch (...) {
    if (first == nullptr) first = std::current_exception();
  }
  if (first != nullptr) std::rethrow_exception(first);
  return took;
}

void sink_multiplexer::flush() {
  for_every(queues_, [](sink_queue& queue) { queue.flush(); });
}

void sink_multiplexer::await_request(std::uint64_t request) {
  for_every(queues_, [&](sink_queue& queue) { queue.await_request(request); });
}

void sink_multiplexer::close() {
  for_every(queues_, [](sink_queue& queue) { queue.close(); });
}

std::vector<named_sink_counts> sink_multiplexer::counts() const {
  std::vector<named_sink_counts> all;
  for (const auto& queue : queues_) all.push_back({queue->name(), queue->counts()});
  return all;
}

std::string sink_multiplexer::metrics() const {
  return metrics_text(counts());
}

}  // namespace reprise
