#include "reprise/replay/verifier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "reprise/base/clock.hpp"
#include "reprise/telemetry/log.hpp"

namespace reprise {

namespace {

std::vector<std::byte> read_back(site at, const tensor_ref& tensor) {
  std::vector<std::byte> bytes(tensor.bytes());
  copy_bytes(at, tensor.data, bytes.data(), bytes.size());
  return bytes;
}

}  // namespace

step_result verifier::check(site at, const step& what, bindings given,
                            const std::function<step_result()>& replay) {
  const std::span<const declared_write> writes = what.declared().writes();
  std::vector<block> before;
  for (const declared_write& w : writes) {
    before.emplace_back(copies_, w.where.bytes(), at.stream, at.place);
    copy_bytes(at, w.where.data, before.back().data(), w.where.bytes());
  }

  // An input may be an output of this very recording, which the replay writes over.
  std::vector<binding> kept{given.begin(), given.end()};
  std::erase_if(kept, [](const binding& b) { return b.is_output; });
  for (binding& b : kept) {
    if (b.on_host || b.to.bytes() == 0) continue;
    before.emplace_back(copies_, b.to.bytes(), at.stream, at.place);
    copy_bytes(at, b.to.data, before.back().data(), b.to.bytes());
    b.to.data = before.back().data();
  }

  philox_counter* const random = what.declared().random();
  const std::uint64_t first_draw = random != nullptr ? random->next() : 0;

  at.stream.synchronize(at.place);
  const double replay_start = now_us();
  step_result result = replay();
  at.stream.synchronize(at.place);
  report_.replay_us += now_us() - replay_start;

  std::vector<std::vector<std::byte>> replayed;
  for (const tensor_ref& out : result.table->outputs()) replayed.push_back(read_back(at, out));
  for (const declared_write& w : writes) replayed.push_back(read_back(at, w.where));

  for (std::size_t i = 0; i < writes.size(); ++i) {
    copy_bytes(at, before[i].data(), writes[i].where.data, writes[i].where.bytes());
  }
  if (random != nullptr) random->set(random->seed(), first_draw);
  at.stream.synchronize(at.place);
  const double eager_start = now_us();
  const step_result plain = eager_.run(at, what, bindings{kept}, {}, nullptr);
  at.stream.synchronize(at.place);
  report_.eager_us += now_us() - eager_start;

  std::vector<std::vector<std::byte>> eager;
  for (const tensor_ref& out : plain.table->outputs()) eager.push_back(read_back(at, out));
  for (const declared_write& w : writes) eager.push_back(read_back(at, w.where));
  at.stream.synchronize(at.place);

  step_equal_ = true;
  const auto outputs = what.declared().outputs();
  for (std::size_t i = 0; i < eager.size(); ++i) {
    const std::string& name =
        i < outputs.size() ? outputs[i].name : writes[i - outputs.size()].name;
    compare(what.name(), name, replayed[i], eager[i]);
  }
  ++report_.steps;
  if (!step_equal_) ++report_.unequal;
  return result;
}

void verifier::compare(const std::string& step, const std::string& name,
                       const std::vector<std::byte>& replayed,
                       const std::vector<std::byte>& eager) {
  const auto [at, other] = std::ranges::mismatch(replayed, eager);
  if (at == replayed.end() && other == eager.end()) return;
  step_equal_ = false;
  if (!report_.first.empty()) return;
  report_.first = fmt::format(
      "step '{}': the replay differs from the eager run in '{}' from byte {} on; report "
      "it with the command that showed it",
      step, name, at - replayed.begin());
  log_line(report_.first);
}

}  // namespace reprise
