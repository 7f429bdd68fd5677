# ctest reads this: each case gets its rule and its device as labels, so that the summary of a run
# names them ("rule 05", "cpu"), and `./run test -L 'rule 05'` runs one rule.
foreach(test IN LISTS conformance_test_TESTS)
  if(test MATCHES "/rule_([0-9][0-9])[a-z_]*\\..*/(cpu|cuda|sim)[a-z0-9_]*$")
    set_tests_properties(${test} PROPERTIES LABELS "rule ${CMAKE_MATCH_1};${CMAKE_MATCH_2}")
  endif()
endforeach()
