#include "reprise/device/tensor.hpp"

#include "reprise/base/error.hpp"
#include "reprise/device/view.hpp"

namespace reprise {

void detail::refuse_direct(const void* word, const char* wanted) {
  throw direct_refused{word, "host code", wanted};
}

std::string to_string(const dims& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank; ++i) {
    if (i != 0) text += ", ";
    text += shape[i] == any ? "any" : std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace reprise
