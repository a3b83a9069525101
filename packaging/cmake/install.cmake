# Installs headers, libraries with a pkg-config file each, vramConfig.cmake, manual pages and completions.
include(CMakePackageConfigHelpers)

set_target_properties(vram_shared PROPERTIES EXPORT_NAME vram)
set_target_properties(vram_static PROPERTIES EXPORT_NAME vram_static)
foreach(product IN ITEMS sim recordings)
  set_target_properties(vram_${product}_shared PROPERTIES EXPORT_NAME ${product})
  set_target_properties(vram_${product}_static PROPERTIES EXPORT_NAME ${product}_static)
endforeach()

install(TARGETS ${VRAM_LIBRARIES} EXPORT vramTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
foreach(folder IN LISTS VRAM_HEADERS)
  install(DIRECTORY ${folder}/vram DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
endforeach()

set(VRAM_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/vram)
install(EXPORT vramTargets NAMESPACE vram:: DESTINATION ${VRAM_PACKAGE_DIR})
configure_package_config_file(packaging/cmake/vramConfig.cmake.in vramConfig.cmake INSTALL_DESTINATION ${VRAM_PACKAGE_DIR})
write_basic_package_version_file(vramConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/vramConfig.cmake ${PROJECT_BINARY_DIR}/vramConfigVersion.cmake DESTINATION ${VRAM_PACKAGE_DIR})

# The path is relative to the prefix unless the folder was given as an absolute path.
foreach(kind IN ITEMS LIB INCLUDE)
  if(IS_ABSOLUTE ${CMAKE_INSTALL_${kind}DIR})
    set(VRAM_PC_${kind}DIR ${CMAKE_INSTALL_${kind}DIR})
  else()
    set(VRAM_PC_${kind}DIR \${prefix}/${CMAKE_INSTALL_${kind}DIR})
  endif()
endforeach()
# The prefix may be chosen as late as in `cmake --install --prefix`.
set(VRAM_PC_TEMPLATE ${PROJECT_SOURCE_DIR}/packaging/cmake/vram.pc.in)
foreach(name IN ITEMS PROJECT_VERSION VRAM_PC_LIBDIR VRAM_PC_INCLUDEDIR VRAM_PC_TEMPLATE PROJECT_BINARY_DIR)
  string(REPLACE "\${prefix}" "\\\${prefix}" value "${${name}}")
  install(CODE "set(${name} \"${value}\")")
endforeach()
# package(NAME DESCRIPTION REQUIRED FLAGS) writes NAME.pc, with the extra libraries of static programs.
function(package name description required flags)
  install(CODE "set(VRAM_PC_NAME ${name})
    set(VRAM_PC_DESCRIPTION \"${description}\")
    set(VRAM_PC_REQUIRED \"${required}\")
    set(VRAM_PC_FLAGS \"${flags}\")
    configure_file(\${VRAM_PC_TEMPLATE} \${PROJECT_BINARY_DIR}/${name}.pc @ONLY)")
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
package(vram "${PROJECT_DESCRIPTION}" "" "")
package(vram-sim "a simulated GPU: vram's driver in plain C" vram "")
package(vram-recordings "recordings of GPU memory: read, explained, replayed" "vram vram-sim" "-Wl,--undefined=vram_recordings_library ")

# Installs the guides that the command's help names, with their examples and pictures.
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN man EXCLUDE PATTERN CMakeLists.txt EXCLUDE PATTERN "*.sh" EXCLUDE)
if(VRAM_TOOLS)
  file(GLOB VRAM_MANUALS CONFIGURE_DEPENDS docs/reference/man/*.1)
  install(FILES ${VRAM_MANUALS} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES tools/completion/vram.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME vram)
  install(FILES tools/completion/_vram DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES tools/completion/vram.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
