# CMake 3.25 does not know this system. It needs no settings.
set(CMAKE_EXECUTABLE_SUFFIX .wasm)
