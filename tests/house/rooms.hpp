// The arrows of the house: which room may include which, and who may know of CUDA and of libraries.
#pragma once

#include <string_view>

#include "tests/house/source.hpp"

namespace reprise::house {

// What is wrong with a file's includes, and with the device implementations that it names.
faults include_faults(const source_file& file);

// Whether a path of arrows leads from one room to another; a room may use itself. "workloads" and
// "apps" count as rooms.
bool may_use(std::string_view from, std::string_view to);

bool is_room(std::string_view name);

// "reprise/device/graph.hpp" lies in "device", "workloads/decode/…" in "workloads". Empty: nowhere.
std::string_view room_of(std::string_view path);

}  // namespace reprise::house
