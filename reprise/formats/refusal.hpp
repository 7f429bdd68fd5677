// The one line that refuses a file: FILE: what is wrong [tensor NAME], what to do.
//
// Every reader here throws through these, so that all refusals read alike and none spans two lines
// whatever the file calls itself or its tensors. Safe from any thread.
#pragma once

#include <string_view>

namespace reprise::formats {

// Throws usage_error. `file` and `tensor` are printed escaped; `what` and `remedy` are taken as
// they are, so a name inside them must already be quoted_name() (printable.hpp).
[[noreturn]] void refuse(std::string_view file, std::string_view what, std::string_view remedy);
[[noreturn]] void refuse_tensor(std::string_view file, std::string_view what,
                                std::string_view tensor, std::string_view remedy);

// What to do about a file that ends too early, and about one whose writer broke the format.
inline constexpr std::string_view copy_again = "download or copy the file again";
inline constexpr std::string_view write_again =
    "write the file again with a writer that keeps to the format";

}  // namespace reprise::formats
