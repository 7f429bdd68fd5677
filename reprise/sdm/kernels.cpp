#include "reprise/sdm/kernels.hpp"

#include "reprise/kernel/registry.hpp"
#include "reprise/sdm/backward.hpp"
#include "reprise/sdm/bank.hpp"
#include "reprise/sdm/forward.hpp"
#include "reprise/sdm/gradients.hpp"
#include "reprise/sdm/order.hpp"
#include "reprise/sdm/pairs.hpp"
#include "reprise/sdm/product_keys.hpp"
#include "reprise/sdm/projection.hpp"
#include "reprise/sdm/step.hpp"
#include "reprise/sdm/weights.hpp"

namespace reprise::REPRISE_BODIES {

void add_sdm(kernel_registry& registry) {
  add_sdm_order(registry);
  add_sdm_weights(registry);
  add_sdm_pairs(registry);
  add_sdm_forward(registry);
  add_sdm_backward(registry);
  add_sdm_gradients(registry);
  add_sdm_bank(registry);
  add_sdm_step(registry);
  add_product_keys(registry);
  add_sdm_projection(registry);
}

}  // namespace reprise::REPRISE_BODIES
