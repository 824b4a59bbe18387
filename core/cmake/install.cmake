# cmake --install gives find_package(weir) with weir::core and weir::c, pkg-config (weir-core, weir), and
# the Lua scripts.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(
  TARGETS weir_core weir_c
  EXPORT weir_targets
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/weir")
install(EXPORT weir_targets NAMESPACE weir:: FILE weirTargets.cmake DESTINATION "${package}")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/weirConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_SOURCE_DIR}/cmake/weirConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/weirConfigVersion.cmake"
        DESTINATION "${package}")

foreach(name weir weir-core)
  configure_file("${CMAKE_CURRENT_SOURCE_DIR}/cmake/${name}.pc.in" "${CMAKE_CURRENT_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()

install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/lua/"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/weir/lua"
  FILES_MATCHING
  PATTERN "*.lua"
  PATTERN incident EXCLUDE
  PATTERN contracts EXCLUDE)
