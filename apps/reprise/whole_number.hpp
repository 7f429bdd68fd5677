// What CLI11 lets through as a value and is none.
#pragma once

#include <string>

namespace reprise::app {

// For .check(): CLI11 reads -1 as the largest number there is, and cuts what is too large.
std::string whole_number(const std::string& text);
std::string not_empty(const std::string& text);

}  // namespace reprise::app
