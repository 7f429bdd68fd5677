// Where the models and the text that ship with Reprise lie.
#pragma once

#include <filesystem>
#include <string_view>

namespace reprise::app {

// Beside the working folder, the program in its build folder, or an installed program. Throws
// usage_error when models/NAME is in none of them; `otherwise` says what to give instead.
std::filesystem::path default_model(std::string_view name, std::string_view otherwise);
// The same for a file, by its path in the source tree.
std::filesystem::path default_text(std::string_view file, std::string_view otherwise);

}  // namespace reprise::app
