# A header that says in its opening comment that it is "for this room's .cpp files" is no part of
# the installed package. Used by the install rules, and by the test that looks at what they did.

# reprise_is_private(FOUND HEADER): whether it says so, in one line or over two.
function(reprise_is_private found header)
  file(READ ${header} text LIMIT 2000)
  string(REGEX REPLACE "\n// ?" " " text "${text}")
  string(FIND "${text}" "or this room's .cpp files" at)
  if(at EQUAL -1)
    set(${found} OFF PARENT_SCOPE)
  else()
    set(${found} ON PARENT_SCOPE)
  endif()
endfunction()
