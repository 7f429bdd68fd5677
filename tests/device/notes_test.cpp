// What pools say to a device that watches memory: which piece of a slab is whose, and since when.
#include "reprise/device/forwarding.hpp"
#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

struct heard_note {
  block_change change = block_change::idle;
  stream_id stream = stream_id::none;
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  std::string pool;
};

class hearing final : public forwarding_device {
 public:
  hearing(std::unique_ptr<device_api> inner, std::vector<heard_note>& notes)
      : forwarding_device{std::move(inner)}, notes_{notes} {}
  void note(stream_id stream, const block_note& what) noexcept override {
    notes_.push_back({what.change, stream, what.begin, what.bytes, std::string{what.pool}});
    forwarding_device::note(stream, what);
  }

 private:
  std::vector<heard_note>& notes_;
};

class a_pool : public testing::Test {
 protected:
  std::vector<heard_note> notes;
  device opened{std::make_unique<hearing>(open_bare("cpu"), notes)};
  stream work{opened};
  stream other{opened};
  pool memory{opened, "noted"};
};

TEST_F(a_pool, says_what_becomes_of_its_memory) {
  std::byte* const at = block{memory, 1000, work}.data();
  ASSERT_EQ(notes.size(), 3U);
  EXPECT_EQ(notes[0].change, block_change::idle);
  EXPECT_EQ(notes[0].bytes, 64 * kib) << "the slab, which is nobody's yet";
  EXPECT_EQ(notes[1].change, block_change::taken);
  EXPECT_EQ(notes[1].begin, at);
  EXPECT_EQ(notes[1].bytes, 1000U) << "what was asked for: a work may touch no more";
  EXPECT_EQ(notes[2].change, block_change::freed);
  EXPECT_EQ(notes[2].begin, at);
  EXPECT_EQ(notes[2].bytes, 1024U) << "the whole piece";
  for (const heard_note& one : notes) EXPECT_EQ(one.pool, "noted");
}

TEST_F(a_pool, says_in_the_order_of_which_stream) {
  {
    block handed{memory, 1000, work};
    handed.freed_on(other);
  }
  ASSERT_EQ(notes.size(), 3U);
  EXPECT_EQ(notes[1].stream, stream_ref{work}.id());
  EXPECT_EQ(notes[2].stream, stream_ref{other}.id());
}

TEST_F(a_pool, says_that_a_block_is_free_inside_the_capture_that_took_it) {
  (void)capture(work, [&](stream_ref c) { const block inside{memory, 1000, c}; });
  ASSERT_EQ(notes.size(), 3U);
  EXPECT_EQ(notes[2].change, block_change::freed);
}

// Its graph goes on writing it.
TEST_F(a_pool, does_not_say_so_of_what_a_capture_took_and_did_not_free) {
  std::optional<block> taken;
  const graph made = capture(work, [&](stream_ref c) { taken.emplace(memory, 1000U, c); });
  taken.reset();
  EXPECT_EQ(notes.size(), 2U);
}

}  // namespace
}  // namespace reprise::test
