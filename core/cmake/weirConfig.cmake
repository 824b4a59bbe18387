include("${CMAKE_CURRENT_LIST_DIR}/weirTargets.cmake")

# Where the Lua scripts are, for whoever loads them into a Redis himself.
get_filename_component(weir_LUA_DIR "${CMAKE_CURRENT_LIST_DIR}/../../../share/weir/lua" ABSOLUTE)

foreach(component IN LISTS weir_FIND_COMPONENTS)
  if(NOT TARGET weir::${component})
    set(weir_FOUND FALSE)
    set(weir_NOT_FOUND_MESSAGE "weir has no component ${component}; it has core and c")
  endif()
endforeach()
