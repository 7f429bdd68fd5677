#include "reprise/train/part.hpp"

namespace reprise {

std::string_view name_of(part_state state) {
  switch (state) {
    case part_state::off: return "off";
    case part_state::cleared: return "cleared";
    case part_state::refused: return "refused";
    case part_state::ready: return "ready";
    case part_state::retired: return "retired";
  }
  return "?";
}

}  // namespace reprise
