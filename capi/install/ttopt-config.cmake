# find_package(ttopt) gives the imported target ttopt::ttopt.
get_filename_component(_ttopt_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET ttopt::ttopt)
  add_library(ttopt::ttopt SHARED IMPORTED)
  set_target_properties(ttopt::ttopt PROPERTIES
    IMPORTED_LOCATION "${_ttopt_prefix}/lib/libttopt.so"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_INCLUDE_DIRECTORIES "${_ttopt_prefix}/include")
endif()
set(ttopt_FOUND TRUE)
unset(_ttopt_prefix)
