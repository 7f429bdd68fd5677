// Sanitizers make a test several times slower, not wrong: what goes on for long does less there.
#pragma once

namespace reprise::test {

#if defined(REPRISE_SANITIZED)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace reprise::test
