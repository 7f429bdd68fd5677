#include "reprise/records/callback_sink.hpp"

#include <exception>
#include <utility>

namespace reprise {

namespace {

class calling final : public record_sink {
 public:
  explicit calling(std::function<void(const tap_record&)> call) : call_{std::move(call)} {
    if (!call_) throw usage_error{"a callback sink without a function; give one"};
  }

  void open(std::string_view) override {}
  void write(std::span<const tap_record> records) override {
    std::size_t taken = 0;
    try {
      for (; taken < records.size(); ++taken) call_(records[taken]);
    } catch (const sink_error& failed) {
      throw sink_error{failed.trouble(), failed.what(), taken};
    } catch (const std::exception& failed) {
      throw sink_error{sink_trouble::records, failed.what(), taken};
    }
  }
  void flush() override {}
  void close() override {}

 private:
  std::function<void(const tap_record&)> call_;
};

}  // namespace

std::unique_ptr<record_sink> callback_sink(std::function<void(const tap_record&)> call) {
  return std::make_unique<calling>(std::move(call));
}

}  // namespace reprise
