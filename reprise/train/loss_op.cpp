#include "reprise/train/loss_op.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"

namespace reprise {

void loss_op::refuse_type(dtype asked) const {
  throw usage_error{fmt::format("loss '{}': its targets '{}' are of {} and not of {}; bind those",
                                op.declared.name(), targets().name, name_of(targets().type),
                                name_of(asked))};
}

}  // namespace reprise
