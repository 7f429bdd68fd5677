// Where the model that ships with Reprise lies.
#pragma once

#include <filesystem>

namespace reprise::app {

// Beside the working folder, the program in its build folder, or an installed program. Throws
// usage_error when it is in none of them; `otherwise` says what to give instead.
std::filesystem::path default_model(const char* otherwise);

}  // namespace reprise::app
