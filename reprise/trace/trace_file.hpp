// A trace as text: one line a call, for people, for `diff` and for files.
//
//   reprise-trace 1
//   device "cuda:0" cuda
//   t1 create_stream stream=1 at="decode.cpp":52
//   t1 allocate memory=device bytes=65536 block=1 at="slab_store.cpp":61
//   t1 submit stream=1 work=fill label="fill" to=block1+256:1024 pattern=4 writes=block1+256:1024
//     node=0 at="decode.cpp":60                                          (one line in a file)
//   t1 synchronize_stream stream=1 at="decode.cpp":61 failed=device_error
//   end calls=4 left_out=0
//
// A line begins with the thread and the kind; then the fields of that kind (fields_of), in that
// order, each once; then the source line, where there is one, and how the call failed, if it did.
// A range is where it begins and how many bytes it has: `block1+256:1024`, `host2+0:64`, `null:8`;
// `reads=` and `writes=` stand once for each access. Texts are quoted; \" and \\ and \xHH stand for
// what is not printable ASCII. The `end` line shows that nothing was cut off.
//
// There is one text for a trace and one trace for a text: whatever is parsed is written back byte
// for byte. Numbers begin without zeros, and no space is spare.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "reprise/trace/trace.hpp"

namespace reprise {

std::string trace_text(const trace& from);

// Any bytes may be given. Throws usage_error with one line that names `name`, the line and the
// remedy. `name` is that of the file, for the message.
trace parse_trace(std::string_view text, std::string_view name = "trace");

// Throw usage_error, naming the file, when it cannot be written or read.
void write_trace(const trace& from, const std::filesystem::path& to);
trace read_trace(const std::filesystem::path& from);

}  // namespace reprise
