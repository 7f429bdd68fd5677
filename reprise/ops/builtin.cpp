#include "reprise/ops/builtin.hpp"

#include "reprise/ops/add.hpp"
#include "reprise/ops/argmax.hpp"
#include "reprise/ops/attention.hpp"
#include "reprise/ops/batch_norm.hpp"
#include "reprise/ops/batch_norm_grad.hpp"
#include "reprise/ops/bias_add.hpp"
#include "reprise/ops/binary_cross_entropy.hpp"
#include "reprise/ops/dropout.hpp"
#include "reprise/ops/embedding.hpp"
#include "reprise/ops/embedding_grad.hpp"
#include "reprise/ops/flow.hpp"
#include "reprise/ops/gelu.hpp"
#include "reprise/ops/gradient_norm.hpp"
#include "reprise/ops/layer_norm.hpp"
#include "reprise/ops/layer_norm_gelu.hpp"
#include "reprise/ops/layer_norm_grad.hpp"
#include "reprise/ops/linear.hpp"
#include "reprise/ops/matmul.hpp"
#include "reprise/ops/moving_average.hpp"
#include "reprise/ops/multiply_by.hpp"
#include "reprise/ops/narrowing.hpp"
#include "reprise/ops/optimizers.hpp"
#include "reprise/ops/put_gradient.hpp"
#include "reprise/ops/random.hpp"
#include "reprise/ops/random_uniform.hpp"
#include "reprise/ops/rms_norm.hpp"
#include "reprise/ops/rope.hpp"
#include "reprise/ops/sample.hpp"
#include "reprise/ops/silu.hpp"
#include "reprise/ops/softmax_cross_entropy.hpp"
#include "reprise/ops/squared_error.hpp"
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
  add_linear(registry);
  add_narrowing(registry);
  add_put_gradient(registry);
  add_add(registry);
  add_multiply_by(registry);
  add_silu(registry);
  add_layer_norm_grad(registry);
  add_layer_norm_gelu(registry);
  add_embedding_grad(registry);
  add_dropout(registry);
  add_softmax_cross_entropy(registry);
  add_squared_error(registry);
  add_optimizers(registry);
  add_batch_norm(registry);
  add_batch_norm_grad(registry);
  add_binary_cross_entropy(registry);
  add_gradient_norm(registry);
  add_moving_average(registry);
}

}  // namespace reprise::REPRISE_BODIES
