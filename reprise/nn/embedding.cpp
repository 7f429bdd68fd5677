#include "reprise/nn/embedding.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/nn/shapes.hpp"
#include "reprise/ops/embedding.hpp"
#include "reprise/ops/embedding_grad.hpp"

namespace reprise::nn {

namespace {

std::int64_t width_of(const parameter& table, const std::string& name) {
  const dims& shape = table.value.shape;
  if (shape.rank == 2 && shape[0] > 0 && shape[1] > 0) return shape[1];
  throw usage_error{
      fmt::format("layer '{}': its table is of shape {} and must be [vocabulary, width], each of "
                  "1 at least; give it such a one",
                  name, to_string(shape))};
}

}  // namespace

embedding::embedding(parameter& table, const std::string& name)
    : declared_{name},
      tokens{declared_.in<std::int32_t>("tokens", {any})},
      y{declared_.out<float>("y")},
      table_{&table},
      width_{width_of(table, name)},
      trains_table_{declare(declared_, "table", table)} {
  require_shape(table, {table.value.shape[0], width_}, name, "table");
}

void embedding::forward(forward_scope& run) const {
  const write<float> to{run.make(y, {run.shape(tokens)[0], width_})};
  launch(run, reprise::embedding<float, float>, read<std::int32_t>{run[tokens]},
         read<float>{values_of(*table_)}, to, width_);
}

void embedding::backward(backward_scope& run) const {
  if (!trains_table_) return;
  const delivery to = run.add_to(*table_);
  launch(run, embedding_grad, read<std::int32_t>{run.saved(tokens)}, read<float>{run.grad(y)},
         inout<float>{to.to}, read<std::int32_t>{to.rule}, width_);
}

}  // namespace reprise::nn
