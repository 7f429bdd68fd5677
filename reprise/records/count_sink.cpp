#include "reprise/records/count_sink.hpp"

#include <fmt/format.h>

#include <utility>

#include "reprise/formats/printable.hpp"
#include "reprise/telemetry/log.hpp"

namespace reprise {

namespace {

class counting_sink final : public record_sink {
 public:
  explicit counting_sink(std::shared_ptr<record_tallies> into)
      : into_{into != nullptr ? std::move(into) : std::make_shared<record_tallies>()} {}

  void open(std::string_view run) override { run_ = run; }
  void write(std::span<const tap_record> records) override {
    for (const tap_record& record : records) into_->add(record);
  }
  void flush() override {}
  void close() override {
    const record_tally all = into_->all();
    log_line(fmt::format("run {}: {} records, {} rows, {} bytes", formats::quoted_name(run_),
                         all.records, all.rows, all.bytes));
  }

 private:
  std::shared_ptr<record_tallies> into_;
  std::string run_;
};

void add_to(record_tally& tally, const record_tally& more) {
  tally.records += more.records;
  tally.rows += more.rows;
  tally.bytes += more.bytes;
}

}  // namespace

void record_tallies::add(const tap_record& record) {
  const record_tally one{1, static_cast<std::uint64_t>(record.rows), record.bytes.size()};
  const std::lock_guard held{guard_};
  add_to(by_point_[point_name(record)], one);
}

std::map<std::string, record_tally> record_tallies::by_point() const {
  const std::lock_guard held{guard_};
  return by_point_;
}

record_tally record_tallies::all() const {
  const std::lock_guard held{guard_};
  record_tally sum;
  for (const auto& [point, tally] : by_point_) add_to(sum, tally);
  return sum;
}

std::unique_ptr<record_sink> count_sink(std::shared_ptr<record_tallies> into) {
  return std::make_unique<counting_sink>(std::move(into));
}

}  // namespace reprise
