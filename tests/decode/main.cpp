// The tests; or, called with alone_flag, the process that runs requests alone.
#include <gtest/gtest.h>

#include <string_view>

#include "tests/decode/rows_alone.hpp"

int main(int argc, char** argv) {
  if (argc == 5 && std::string_view{argv[1]} == reprise::test::alone_flag) {
    return reprise::test::write_rows_alone(argv[2], argv[3], argv[4]);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
