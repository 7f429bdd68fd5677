// The body of an insert inside a gzip frame, not compressed. For this room's .cpp files.
//
// A server takes the end of a connection for the end of a body: rows that were cut off at a row's
// end would be inserted, whenever the server gets to it, without the others. A frame says by its
// own end and checksum that it is whole, and a body that is cut anywhere is refused.
#pragma once

#include <string>
#include <string_view>

namespace reprise::records {

// For the header Content-Encoding: gzip. Throws reprise::error where there is no memory.
std::string framed_body(std::string_view body);

}  // namespace reprise::records
