# Builds the command as a WebAssembly program: <build>/vram.wasm. Needs -DCMAKE_TOOLCHAIN_FILE=packaging/cmake/wasi.cmake,
# -DVRAM_BUNDLED=FOLDER and -DVRAM_VIEWER_PAGE=viewer.html.
include(packaging/cmake/portable_sources.cmake)
include(packaging/cmake/bundled.cmake)
add_compile_options(-ftls-model=local-exec -mbulk-memory -ffunction-sections -fdata-sections)

file(GLOB_RECURSE export_sources CONFIGURE_DEPENDS recordings/export/*.c)
add_library(portable_objects OBJECT ${PORTABLE_SOURCES} ${export_sources})
target_include_directories(portable_objects PRIVATE ${VRAM_ROOTS} PUBLIC ${VRAM_HEADERS})
target_compile_definitions(portable_objects PRIVATE VRAM_CHECK=0)

file(GLOB cli_sources CONFIGURE_DEPENDS cli/*.c cli/formats/*.c cli/wasi/*.c)
list(FILTER cli_sources EXCLUDE REGEX
  "/cli/(attach|check|http|program|recorded_processes|run|serve|sim|watch|doctor|fit|cmd_(attach|check|doctor|export|fit|run|sim|symbolize|top)|mcp_program)[a-z_]*\\.c$")
add_executable(vram_cli ${cli_sources})
set_target_properties(vram_cli PROPERTIES OUTPUT_NAME vram)
target_include_directories(vram_cli BEFORE PRIVATE cli/wasi)
target_include_directories(vram_cli PRIVATE src)
target_compile_definitions(vram_cli PRIVATE _POSIX_C_SOURCE=200809L _WASI_EMULATED_SIGNAL VRAM_CHECK=0)
target_compile_options(vram_cli PRIVATE -include ${PROJECT_SOURCE_DIR}/cli/wasi/posix_gaps.h)
target_link_libraries(vram_cli PRIVATE portable_objects vram_bundled wasi-emulated-signal m)
target_link_options(vram_cli PRIVATE -Wl,--gc-sections -Wl,--strip-all -Wl,--max-memory=4294967296 -Wl,-z,stack-size=1048576)
set_source_files_properties(cli/wasi/begin.c PROPERTIES INCLUDE_DIRECTORIES "${VRAM_ROOTS}")
set_source_files_properties(cli/view_page.c PROPERTIES COMPILE_DEFINITIONS "VRAM_VIEWER_PAGE=\"${VRAM_VIEWER_PAGE}\"" OBJECT_DEPENDS ${VRAM_VIEWER_PAGE})

# The library for Python's `vram` module on systems without a native one: readers and columns.
add_executable(vram_library cli/wasi/begin.c)
set_target_properties(vram_library PROPERTIES OUTPUT_NAME vram_library)
target_link_libraries(vram_library PRIVATE portable_objects m)
set(exported malloc free vram_recording_read_memory vram_recording_destroy vram_recording_column vram_column_word
  vram_recording_string_count vram_recording_string vram_recording_device_count vram_recording_device_is_host)
list(TRANSFORM exported PREPEND -Wl,--export=)
target_link_options(vram_library PRIVATE -mexec-model=reactor ${exported} -Wl,--gc-sections -Wl,--strip-all -Wl,--max-memory=4294967296
  -Wl,-z,stack-size=1048576)
