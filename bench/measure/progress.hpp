// How a bench tells that it is under way. Called between measurements, never inside one.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

namespace reprise::bench {

// What is being measured, and how many of its parts are done.
using progress = std::function<void(std::string_view what, std::size_t done, std::size_t total)>;

}  // namespace reprise::bench
