# The sources that run without an operating system (WebAssembly): whole rooms with their folders, and the parts of the driver, the operating
# system and the history that a program without processes, threads and devices can use.
set(PORTABLE_SOURCES)
foreach(part IN ITEMS allocator/base allocator/config allocator/core allocator/inspect allocator/driver/cuda allocator/driver/hip allocator/os/wasm
                recordings/model recordings/snapshot recordings/analyze recordings/present recordings/explore replay simulator/check simulator/sim)
  file(GLOB_RECURSE part_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${part}/*.c)
  list(APPEND PORTABLE_SOURCES ${part_sources})
endforeach()
file(GLOB more_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/allocator/driver/*.c ${PROJECT_SOURCE_DIR}/allocator/history/log?*.c)
list(APPEND PORTABLE_SOURCES ${more_sources} ${PROJECT_SOURCE_DIR}/allocator/os/posix/clock.c)
