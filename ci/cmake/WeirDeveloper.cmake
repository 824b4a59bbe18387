# What every target of ours is built with. Presets (CMakePresets.json) choose the rest.

include_guard()

find_program(CCACHE ccache)
if(CCACHE AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE}")
endif()

add_library(weir_developer INTERFACE)
target_compile_features(weir_developer INTERFACE cxx_std_20)
if(PROJECT_IS_TOP_LEVEL)
  # GCC 12 sees overlaps in "literal" + std::string (its bug 105651), and uses of an empty
  # std::optional<std::string>, that are not there.
  target_compile_options(weir_developer INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wsign-conversion;-Wnon-virtual-dtor;-Wold-style-cast;-Wcast-align;-Woverloaded-virtual;-Wdeprecated-copy-dtor;-Werror;$<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-maybe-uninitialized>>
    $<$<COMPILE_LANGUAGE:C>:-Wall;-Wextra;-Wshadow;-Wconversion;-Werror>)
  # Everything but core is included by its path from the top: "model/bucket.h".
  target_include_directories(weir_developer INTERFACE "${PROJECT_SOURCE_DIR}")
endif()

# weir_suite(<name> SOURCES <file>... [LINK <target>...] LABELS <label>... [TIMEOUT <seconds>])
# One Boost.Test executable, one ctest entry. A label's target builds its suites and no more:
# `--target suites_threads`.
#   unit     no Redis              redis   starts its own Redis
#   threads  starts threads: also run under ThreadSanitizer
#   relacy   searches the orders that the C++ memory model allows
#   slow     not run under AddressSanitizer
set(WEIR_LABELS unit redis threads relacy slow)
function(weir_suite name)
  cmake_parse_arguments(PARSE_ARGV 1 suite "" "TIMEOUT" "SOURCES;LINK;LABELS")
  foreach(label IN LISTS suite_LABELS)
    if(NOT label IN_LIST WEIR_LABELS)
      message(FATAL_ERROR "${name}: '${label}' is no label; they are ${WEIR_LABELS}")
    endif()
  endforeach()
  find_package(Boost REQUIRED COMPONENTS unit_test_framework)
  find_package(rapidcheck REQUIRED)
  add_executable(${name} ${suite_SOURCES})
  target_compile_definitions(${name} PRIVATE BOOST_TEST_DYN_LINK BOOST_TEST_MODULE=${name})
  target_link_libraries(${name} PRIVATE weir_developer ${suite_LINK} Boost::unit_test_framework rapidcheck_boost_test)
  add_test(NAME ${name} COMMAND ${name} --log_level=test_suite --report_level=short)
  if(NOT suite_TIMEOUT)
    set(suite_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${suite_TIMEOUT} LABELS "${suite_LABELS}")
  foreach(label IN LISTS suite_LABELS)
    if(NOT TARGET suites_${label})
      add_custom_target(suites_${label})
    endif()
    add_dependencies(suites_${label} ${name})
  endforeach()
endfunction()
