#include "reprise/records/record_batch.hpp"

#include <algorithm>

namespace reprise {

namespace {

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + 15) / 16 * 16;
}

}  // namespace

record_batch::record_batch(std::span<const tap_record> records)
    : records_{records.begin(), records.end()} {
  std::size_t bytes = 0;
  std::size_t sizes = 0;
  std::size_t letters = 0;
  for (const tap_record& record : records) {
    check(record);
    bytes += aligned(record.bytes.size());
    sizes += record.shape.size();
    letters += record.kind.size();
  }
  // To their full length at once: what points into them must not move.
  bytes_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
  sizes_.resize(sizes);
  kinds_.resize(letters);
  std::size_t byte = 0;
  std::size_t size = 0;
  std::size_t letter = 0;
  for (tap_record& record : records_) {
    std::ranges::copy(record.bytes, bytes_.get() + byte);
    std::ranges::copy(record.shape, sizes_.begin() + static_cast<std::ptrdiff_t>(size));
    std::ranges::copy(record.kind, kinds_.begin() + static_cast<std::ptrdiff_t>(letter));
    record.bytes = {bytes_.get() + byte, record.bytes.size()};
    record.shape = std::span{sizes_}.subspan(size, record.shape.size());
    record.kind = std::string_view{kinds_}.substr(letter, record.kind.size());
    byte += aligned(record.bytes.size());
    size += record.shape.size();
    letter += record.kind.size();
  }
}

}  // namespace reprise
