#include "reprise/records/open_sink.hpp"

#include <variant>

#include "reprise/records/arrow/arrow_sink.hpp"
#include "reprise/records/clickhouse/clickhouse_sink.hpp"
#include "reprise/records/count_sink.hpp"
#include "reprise/records/sink_address.hpp"

namespace reprise {

namespace {

// One call for each kind of address; a kind without one does not compile.
struct opening {
  std::unique_ptr<record_sink> operator()(const run_folder_address& at) const {
    return arrow_sink(at.folder);
  }
  std::unique_ptr<record_sink> operator()(const clickhouse_address& at) const {
    return clickhouse_sink(at);
  }
  std::unique_ptr<record_sink> operator()(const count_address&) const { return count_sink(); }
};

}  // namespace

std::unique_ptr<record_sink> open_sink(std::string_view where) {
  return std::visit(opening{}, parse_sink_address(where));
}

}  // namespace reprise
