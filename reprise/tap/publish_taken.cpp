#include "reprise/tap/publish_taken.hpp"

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/tap/publication_protocol.hpp"

namespace reprise::REPRISE_BODIES {

namespace {

struct host_publisher {
  read<std::uint64_t> plan;
  inout<std::uint64_t> words;
  write<std::uint64_t> publications;
  std::size_t index;

  std::uint64_t taken() const { return words[index]; }
  void publish(std::uint64_t word) const {
    const std::uint64_t slot = plan[index * descriptor_words + descriptor::slot];
    store_atomically(publications.data() + slot, word, published_with.publish);
  }
  void take_back() const { words[index] = 0; }
};

}  // namespace

void publish_taken_cpu(cpu_call&, read<std::uint64_t> plan, inout<std::uint64_t> taken,
                       write<std::uint64_t> publications) {
  for (std::size_t i = 0; i < taken.size(); ++i) {
    host_publisher on{plan, taken, publications, i};
    publish_one(on);
  }
}

void add_publish_taken(kernel_registry& registry) {
  registry.add(publish_taken,
               {{device_kind::cpu, "generic", publish_taken_cpu},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(publish_taken_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
