// Records as rows of a ClickHouse table, for fleets: many writers, one database.
//
// One block for each batch, so that a batch is in the table whole or not at all, under a query id
// of its own. After a connection that broke nothing is known of the batch that was on its way: the
// sink waits until the server runs no insert of that id, counts which rows are there, and sends the
// others. So nothing is lost and nothing is there twice. docs/records.md has the table.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "reprise/records/clickhouse/http_call.hpp"
#include "reprise/records/record_sink.hpp"
#include "reprise/records/sink_address.hpp"

namespace reprise {

struct clickhouse_sink_options {
  http_call call{};      // empty: http_to(address)
  std::string writer{};  // begins the ids of batches; empty: drawn by the system
  // Between two looks at an insert that is still running; empty: sleeps.
  std::function<void(std::int64_t pause_us)> pause{};
  std::int64_t look_again_us = 100'000;
  int most_looks = 600;  // then nobody answers, and the batch is tried again later
};

// Opening it makes the table, or finds it; open() throws usage_error, one line, where nobody
// answers, nobody is let in, or the table has another schema. Here: where the build has no HTTP.
// Not more than 1,048,576 records go into one write(), the server's largest block.
std::unique_ptr<record_sink> clickhouse_sink(clickhouse_address address,
                                             clickhouse_sink_options options = {});

}  // namespace reprise
