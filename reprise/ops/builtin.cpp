#include "reprise/ops/builtin.hpp"

#include "reprise/ops/argmax.hpp"
#include "reprise/ops/attention.hpp"
#include "reprise/ops/bias_add.hpp"
#include "reprise/ops/embedding.hpp"
#include "reprise/ops/flow.hpp"
#include "reprise/ops/gelu.hpp"
#include "reprise/ops/layer_norm.hpp"
#include "reprise/ops/matmul.hpp"
#include "reprise/ops/random.hpp"
#include "reprise/ops/random_uniform.hpp"
#include "reprise/ops/rms_norm.hpp"
#include "reprise/ops/rope.hpp"
#include "reprise/ops/sample.hpp"
#include "reprise/ops/swiglu.hpp"
#include "reprise/ops/switch_nodes.hpp"
#include "reprise/ops/timestep_embedding.hpp"

namespace reprise::REPRISE_BODIES {

void add_builtin_kernels(kernel_registry& registry) {
  add_embedding(registry);
  add_rms_norm(registry);
  add_matmul(registry);
  add_rope(registry);
  add_attention(registry);
  add_swiglu(registry);
  add_argmax(registry);
  add_sample(registry);
  add_random(registry);
  add_random_uniform(registry);
  add_switch_nodes(registry);
  add_layer_norm(registry);
  add_bias_add(registry);
  add_gelu(registry);
  add_timestep_embedding(registry);
  add_flow(registry);
}

}  // namespace reprise::REPRISE_BODIES
