#include "reprise/records/clickhouse/clickhouse_sink.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "reprise/base/mutant.hpp"
#include "reprise/records/clickhouse/row_binary.hpp"
#include "reprise/records/clickhouse/server.hpp"
#include "reprise/records/schema.hpp"
#include "reprise/telemetry/log.hpp"

namespace reprise {

namespace {

constexpr std::size_t largest_block = 1'048'576;  // max_insert_block_size, of all versions

std::string drawn_writer() {
  std::random_device system;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", system(), system(), system(), system());
}

void sleep_us(std::int64_t us) {
  std::this_thread::sleep_for(std::chrono::microseconds{us});
}

// Tells whether the same records are handed over again: which they are, not what they hold.
std::uint64_t fingerprint(std::span<const tap_record> records) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  const auto add = [&](std::uint64_t number) { hash = (hash ^ number) * 1099511628211U; };
  add(records.size());
  for (const tap_record& record : records) {
    add(record.run);
    add(record.step);
    add(static_cast<std::uint64_t>(record.replay));
    for (const char c : record.kind) add(static_cast<unsigned char>(c));
    add(static_cast<std::uint64_t>(record.layer));
    add(static_cast<std::uint64_t>(record.shard));
    add(record.request);
    add(static_cast<std::uint64_t>(record.first_row));
    add(record.bytes.size());
  }
  return hash;
}

std::span<const tap_record> first_block(std::span<const tap_record> records) {
  return records.first(std::min(largest_block, records.size()));
}

std::string insert_text() {
  std::string columns;
  for (const records::table_column& column : records::block_columns) {
    columns += fmt::format("{}{}", columns.empty() ? "" : ", ", column.name);
  }
  for (const record_column& column : record_columns) columns += fmt::format(", {}", column.name);
  return fmt::format("INSERT INTO {} ({}) FORMAT RowBinary", records::records_table, columns);
}

class table_sink final : public record_sink {
 public:
  table_sink(clickhouse_address address, clickhouse_sink_options options)
      : server_{address, options.call ? options.call : http_to(address)},
        options_{std::move(options)} {
    if (options_.writer.empty()) options_.writer = drawn_writer();
    if (!options_.pause) options_.pause = sleep_us;
  }

  void open(std::string_view run) override {
    run_ = run;
    server_.open();
  }

  void write(std::span<const tap_record> records) override {
    std::size_t there = 0;
    if (unsure_) {
      const std::uint64_t arrived = arrived_of(*unsure_);
      if (unsure_->records == fingerprint(first_block(records))) {
        there = arrived;
      } else {
        tell_of_late(arrived);
      }
      unsure_.reset();
    }
    while (there < records.size()) {
      const auto block = first_block(records.subspan(there));
      insert(block, there);
      there += block.size();
    }
  }

  // Each batch is in the table once the server has said so.
  void flush() override {}

  void close() override {
    if (!unsure_) return;
    try {
      tell_of_late(arrived_of(*unsure_));
    } catch (const sink_error&) {  // of records that are counted as lost already
    }
  }

 private:
  // A batch of which nobody knows whether it arrived.
  struct unsure_batch {
    std::string id;
    std::uint64_t records;  // their fingerprint
    std::size_t count;
  };

  void insert(std::span<const tap_record> block, std::size_t there) {
    const std::string id = fmt::format("{}-{}", options_.writer, ++batches_);
    unsure_ = {id, fingerprint(block), block.size()};
    try {
      server_.ask(insert_text(), id, records::rows_of(block, run_, id));
    } catch (const connection_broken& away) {
      throw sink_error{sink_trouble::away, away.what(), there};
    } catch (const records::server_refusal& no) {
      throw sink_error{trouble_of(no), no.what(), there};
    }
    unsure_.reset();
  }

  void tell_of_late(std::uint64_t arrived) const {
    if (arrived == 0) return;
    log_line(fmt::format("{}: {} records arrived that were counted as lost", server_.at().text(),
                         arrived));
  }

  static sink_trouble trouble_of(const records::server_refusal& no) {
    if (no.not_let_in()) return sink_trouble::for_good;
    // What is not ClickHouse's own answer comes from something in between.
    return no.code() == 0 ? sink_trouble::away : sink_trouble::records;
  }

  // How many of its rows are in the table: the first ones, since a block is read in order.
  std::uint64_t arrived_of(const unsure_batch& batch) {
    try {
      wait_out(batch.id);
      if (REPRISE_MUTANT(what_arrived_is_sent_again)) return 0;
      const std::string rows =
          fmt::format("FROM {} WHERE run_name = {} AND batch = {}", records::records_table,
                      records::sql_text(run_), records::sql_text(batch.id));
      const std::uint64_t arrived = server_.ask_number("SELECT count() " + rows);
      if (arrived == 0) return 0;
      const std::uint64_t last = server_.ask_number("SELECT max(in_batch) " + rows);
      if (last + 1 != arrived || arrived > batch.count) {
        throw sink_error{sink_trouble::for_good,
                         fmt::format("{}: the table has {} rows of a batch of {}, up to row {}; "
                                     "look for another writer of the same name",
                                     server_.at().text(), arrived, batch.count, last)};
      }
      return arrived;
    } catch (const connection_broken& away) {
      throw sink_error{sink_trouble::away, away.what()};
    } catch (const records::server_refusal& no) {
      throw sink_error{no.not_let_in() ? sink_trouble::for_good : sink_trouble::away, no.what()};
    }
  }

  void wait_out(const std::string& id) {
    if (REPRISE_MUTANT(running_insert_is_not_waited_for)) return;
    const std::string running = fmt::format(
        "SELECT count() FROM system.processes WHERE query_id = {}", records::sql_text(id));
    for (int look = 0; look < options_.most_looks; ++look) {
      if (server_.ask_number(running) == 0) return;
      options_.pause(options_.look_again_us);
    }
    throw sink_error{sink_trouble::away,
                     fmt::format("{}: an insert from before the connection broke is still running; "
                                 "it is waited for again later",
                                 server_.at().text())};
  }

  records::clickhouse_server server_;
  clickhouse_sink_options options_;
  std::string run_;
  std::uint64_t batches_ = 0;
  std::optional<unsure_batch> unsure_;
};

}  // namespace

std::unique_ptr<record_sink> clickhouse_sink(clickhouse_address address,
                                             clickhouse_sink_options options) {
  return std::make_unique<table_sink>(std::move(address), std::move(options));
}

}  // namespace reprise
