// The version of this build, from the project file.
#pragma once

namespace reprise::app {

inline constexpr const char* version = REPRISE_VERSION;

}  // namespace reprise::app
