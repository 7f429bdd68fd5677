#include "reprise/device/tensor.hpp"

namespace reprise {

std::string to_string(const dims& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank; ++i) {
    if (i != 0) text += ", ";
    text += shape[i] == any ? "any" : std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace reprise
