# The libraries that the command needs, for machines without them: compiled from the sources in VRAM_BUNDLED (see packaging/sources.sh),
# static, under the names that cli/CMakeLists.txt links.
set(zlib ${VRAM_BUNDLED}/zlib)
add_library(bundled_zlib STATIC ${zlib}/adler32.c ${zlib}/crc32.c ${zlib}/deflate.c ${zlib}/inffast.c ${zlib}/inflate.c ${zlib}/inftrees.c
  ${zlib}/trees.c ${zlib}/zutil.c)
target_include_directories(bundled_zlib PUBLIC ${zlib})

file(GLOB zstd_sources ${VRAM_BUNDLED}/zstd/lib/common/*.c ${VRAM_BUNDLED}/zstd/lib/compress/*.c ${VRAM_BUNDLED}/zstd/lib/decompress/*.c)
add_library(bundled_zstd STATIC ${zstd_sources})
target_compile_definitions(bundled_zstd PRIVATE ZSTD_DISABLE_ASM)
target_include_directories(bundled_zstd PUBLIC ${VRAM_BUNDLED}/zstd/lib)

set(xz ${VRAM_BUNDLED}/xz/src)
file(GLOB xz_sources ${xz}/liblzma/common/*.c ${xz}/liblzma/delta/*.c ${xz}/liblzma/lz/*.c ${xz}/liblzma/lzma/*.c ${xz}/liblzma/rangecoder/*.c
  ${xz}/liblzma/simple/*.c ${xz}/liblzma/check/*.c)
# Leaves out the programs that generate tables, because the tables are there, and threads, which the command does not use.
list(FILTER xz_sources EXCLUDE REGEX "(_small|tablegen|stream_encoder_mt|stream_decoder_mt|outqueue|hardware_cputhreads|hardware_physmem)\\.c$")
add_library(bundled_xz STATIC ${xz_sources})
set(xz_parts HAVE_STDBOOL_H HAVE_STDINT_H HAVE_INTTYPES_H HAVE_CHECK_CRC32 HAVE_CHECK_CRC64 HAVE_CHECK_SHA256 HAVE_LZIP_DECODER)
foreach(filter IN ITEMS LZMA1 LZMA2 X86 POWERPC IA64 ARM ARMTHUMB ARM64 SPARC DELTA)
  list(APPEND xz_parts HAVE_ENCODER_${filter} HAVE_DECODER_${filter})
endforeach()
foreach(finder IN ITEMS HC3 HC4 BT2 BT3 BT4)
  list(APPEND xz_parts HAVE_MF_${finder})
endforeach()
list(TRANSFORM xz_parts APPEND "=1")
target_compile_definitions(bundled_xz PRIVATE ${xz_parts} HAVE_ENCODERS HAVE_DECODERS TUKLIB_SYMBOL_PREFIX=lzma_ PUBLIC LZMA_API_STATIC)
target_include_directories(bundled_xz PRIVATE ${xz}/common ${xz}/liblzma/api ${xz}/liblzma/common ${xz}/liblzma/check ${xz}/liblzma/lz
  ${xz}/liblzma/rangecoder ${xz}/liblzma/lzma ${xz}/liblzma/delta ${xz}/liblzma/simple PUBLIC ${xz}/liblzma/api)
if(CMAKE_SYSTEM_NAME STREQUAL "WASI")
  target_compile_options(bundled_xz PRIVATE -D_WASI_EMULATED_SIGNAL -include ${PROJECT_SOURCE_DIR}/cli/wasi/signal_sets.h)
endif()

# The command includes its header as <cjson/cJSON.h>.
add_library(bundled_cjson STATIC ${VRAM_BUNDLED}/cjson/cJSON.c)
target_include_directories(bundled_cjson PUBLIC ${VRAM_BUNDLED})

# The command uses one connection, one thread, and a file that no other process opens.
add_library(bundled_sqlite STATIC ${VRAM_BUNDLED}/sqlite/sqlite3.c)
target_compile_definitions(bundled_sqlite PRIVATE SQLITE_THREADSAFE=0 SQLITE_OMIT_LOAD_EXTENSION SQLITE_OMIT_WAL SQLITE_DQS=0
  SQLITE_OMIT_SHARED_CACHE SQLITE_DEFAULT_MEMSTATUS=0 SQLITE_OMIT_DEPRECATED)
target_include_directories(bundled_sqlite PUBLIC ${VRAM_BUNDLED}/sqlite)

# Third-party code: its warnings are not ours, and it uses GNU C.
foreach(library IN ITEMS zlib zstd xz cjson sqlite)
  target_compile_options(bundled_${library} PRIVATE -w)
  set_target_properties(bundled_${library} PROPERTIES C_EXTENSIONS ON)
endforeach()
add_library(vram_bundled INTERFACE)
target_link_libraries(vram_bundled INTERFACE bundled_zlib bundled_zstd bundled_xz bundled_cjson bundled_sqlite)
