// What a device says when it is closed, and what it may have lost track of before.
#include "reprise/device/forwarding.hpp"
#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

class closing_on : public testing::TestWithParam<std::string> {
 protected:
  device open() const {
    return open_device(GetParam(), {.threads = 1, .counts = nullptr}, kernel_registry{});
  }
};

TEST_P(closing_on, in_order_says_nothing) {
  const reports quiet;
  {
    const device opened = open();
    const stream work{opened};
    pool memory{opened};
    const buffer<int> x{memory, 100, work};
    const pinned<int> p{opened, 100};
    fill(work, write<int>{x}, 1);
    copy(work, read<int>{x}, write<int>{p});
    work.synchronize();
  }
  EXPECT_EQ(reports::taken(), std::vector<std::string>{});
}

TEST_P(closing_on, while_things_are_held_reports_how_much) {
  const reports heard;
  // Never destroyed: their device is gone.
  struct held {
    explicit held(device_ref device)
        : work{device}, memory{device}, x{memory, 100, work}, p{device, 100} {}
    stream work;
    pool memory;
    buffer<int> x;
    pinned<int> p;
  };
  static auto& lost = *new std::vector<const held*>;
  {
    const device opened = open();
    lost.push_back(new held{opened});
  }
  const std::vector<std::string> said = reports::taken();
  ASSERT_FALSE(said.empty());
  EXPECT_EQ(said.front(),
            GetParam() +
                " was closed while 65536 bytes of pools, 400 pinned bytes, 0 "
                "executables and 1 streams were still held; destroy them before the device");
}

TEST_P(closing_on, returns_idle_slabs_to_the_device) {
  const auto counts = std::make_shared<call_counts>();
  {
    const device opened =
        open_device(GetParam(), {.threads = 1, .counts = counts}, kernel_registry{});
    const stream work{opened};
    const block gone{*std::make_unique<pool>(opened), 100, work};
  }
  EXPECT_EQ((*counts)[seam_call::allocate], 1U);
  EXPECT_EQ((*counts)[seam_call::release], 1U);
}

INSTANTIATE_TEST_SUITE_P(devices, closing_on, each_device(), device_of);

// A stream counts as passed only when the device has waited for it.
class slow_to_destroy final : public forwarding_device {
 public:
  slow_to_destroy(std::unique_ptr<device_api> inner, const std::function<void()>& meanwhile)
      : forwarding_device{std::move(inner)}, meanwhile_{meanwhile} {}
  using forwarding_device::destroy;
  void destroy(stream_id stream) noexcept override {
    if (meanwhile_) meanwhile_();
    forwarding_device::destroy(stream);
  }

 private:
  const std::function<void()>& meanwhile_;
};

TEST(a_stream_that_is_being_destroyed, does_not_give_its_memory_to_others_yet) {
  std::function<void()> meanwhile;
  const device opened{std::make_unique<slow_to_destroy>(open_bare("cpu"), meanwhile)};
  pool memory{opened};
  const stream other{opened};
  std::byte* at = nullptr;
  bool reused = true;
  {
    const stream dying{opened};
    at = block{memory, 64 * kib, dying}.data();
    meanwhile = [&] { reused = block{memory, 64 * kib, other}.data() == at; };
  }
  EXPECT_FALSE(reused) << "its work may still be running";
  meanwhile = nullptr;
  const block own{memory, 64 * kib, other};
  EXPECT_EQ((block{memory, 64 * kib, other}.data()), at);
}

}  // namespace
}  // namespace reprise::test
