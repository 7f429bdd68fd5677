// What a card says of itself, without opening it; in a build without the CUDA half too.
#include <fmt/format.h>

#include "reprise/cuda/arch.hpp"
#include "reprise/cuda/device.hpp"

namespace reprise {

device_traits traits_of(const cuda_row& card) {
  const cuda::capability is{card.compute_major, card.compute_minor};
  device_traits traits;
  traits.name = card.name;
  traits.model = card.model;
  traits.bodies = device_kind::cuda;
  traits.arch_chain = cuda::arch_chain(is, cuda::this_build());
  const cuda::built_code* const code = cuda::code_for(is, cuda::this_build());
  traits.arch_note = fmt::format("compute {}.{} with {}", is.major, is.minor,
                                 code == nullptr ? "no code" : cuda::text_of(*code));
  return traits;
}

}  // namespace reprise
