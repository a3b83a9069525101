# What of the library runs where there is no operating system to speak of (WebAssembly): whole rooms with their folders; of the driver, the
# operating system and the history what a program without processes, threads and devices can use.
set(PORTABLE_SOURCES)
foreach(part IN ITEMS base model config snapshot analyze replay present explore core driver/cuda driver/hip driver/sim os/wasm)
  file(GLOB_RECURSE part_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${part}/*.c)
  list(APPEND PORTABLE_SOURCES ${part_sources})
endforeach()
file(GLOB more_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/driver/*.c ${PROJECT_SOURCE_DIR}/src/history/log?*.c)
list(APPEND PORTABLE_SOURCES ${more_sources} ${PROJECT_SOURCE_DIR}/src/os/posix/clock.c)
