# The libraries of a product: objects, compiled once, then linked into libNAME.a and libNAME.so.
#
# vram_library(TARGET NAME FILES NEEDS): TARGET_objects, TARGET_static and TARGET_shared. NEEDS are the products (their TARGETs) below this
# one. A shared library has its own copy of the functions it uses from them, which it does not export, so that no library depends on hidden
# symbols of another one. A static program has each product once.
set(VRAM_HEADERS_OF_BUILD "$<BUILD_INTERFACE:${VRAM_HEADERS}>")

function(vram_library target name files needs)
  add_library(${target}_objects OBJECT ${files})
  target_compile_definitions(${target}_objects PRIVATE VRAM_BUILD_SHARED)
  target_include_directories(${target}_objects PRIVATE ${VRAM_ROOTS} PUBLIC ${VRAM_HEADERS})
  target_link_libraries(${target}_objects PRIVATE vram_flags PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
  set(archives ${needs})
  list(TRANSFORM archives APPEND _static)

  add_library(${target}_static STATIC $<TARGET_OBJECTS:${target}_objects>)
  set_target_properties(${target}_static PROPERTIES OUTPUT_NAME ${name} ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  target_include_directories(${target}_static PUBLIC "${VRAM_HEADERS_OF_BUILD}" $<INSTALL_INTERFACE:include>)
  target_link_libraries(${target}_static PRIVATE $<BUILD_INTERFACE:vram_flags> PUBLIC ${archives} Threads::Threads ${CMAKE_DL_LIBS} m)

  add_library(${target}_shared SHARED $<TARGET_OBJECTS:${target}_objects>)
  # Before 1.0, structs may change with every minor version, so a program must find the library of the headers it was compiled with, or
  # none. libvram also looks for libvram-recordings in its own folder.
  set_target_properties(${target}_shared PROPERTIES OUTPUT_NAME ${name} VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
    BUILD_RPATH_USE_ORIGIN ON BUILD_RPATH $ORIGIN INSTALL_RPATH $ORIGIN)
  target_include_directories(${target}_shared PUBLIC "${VRAM_HEADERS_OF_BUILD}" $<INSTALL_INTERFACE:include>)
  target_link_libraries(${target}_shared PRIVATE $<BUILD_INTERFACE:vram_flags> m PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
  if(needs)
    # Links the file's name instead of the target, so that the installed library does not depend on it.
    foreach(archive IN LISTS archives)
      add_dependencies(${target}_shared ${archive})
      target_link_options(${target}_shared PRIVATE LINKER:--exclude-libs,$<TARGET_FILE_NAME:${archive}>)
      target_link_libraries(${target}_shared PRIVATE $<BUILD_INTERFACE:$<TARGET_FILE:${archive}>>)
    endforeach()
  endif()
endfunction()
