// vocabulary.h: the words of PyTorch's snapshots. Every reader interns them first, in this order, so that a word's string id equals its
// enum.
#ifndef VR_SNAPSHOT_VOCABULARY_H
#define VR_SNAPSHOT_VOCABULARY_H

#include "model/model.h"

// X(CONSTANT, "text"). Keys of dictionaries, and the names of kinds and states. The actions come before them.
#define VR_WORDS(X)                                                                                                                        \
    X(ADDR, "addr")                                                                                                                        \
    X(ADDRESS, "address")                                                                                                                  \
    X(SIZE, "size")                                                                                                                        \
    X(STREAM, "stream")                                                                                                                    \
    X(ACTION, "action")                                                                                                                    \
    X(TIME_US, "time_us")                                                                                                                  \
    X(FRAMES, "frames")                                                                                                                    \
    X(DEVICE_FREE, "device_free")                                                                                                          \
    X(COMPILE_CONTEXT, "compile_context")                                                                                                  \
    X(USER_METADATA, "user_metadata")                                                                                                      \
    X(POOL_ID, "pool_id")                                                                                                                  \
    X(NAME, "name")                                                                                                                        \
    X(FILENAME, "filename")                                                                                                                \
    X(LINE, "line")                                                                                                                        \
    X(DEVICE, "device")                                                                                                                    \
    X(TOTAL_SIZE, "total_size")                                                                                                            \
    X(ALLOCATED_SIZE, "allocated_size")                                                                                                    \
    X(ACTIVE_SIZE, "active_size")                                                                                                          \
    X(REQUESTED_SIZE, "requested_size")                                                                                                    \
    X(SEGMENT_TYPE, "segment_type")                                                                                                        \
    X(SEGMENT_POOL_ID, "segment_pool_id")                                                                                                  \
    X(IS_EXPANDABLE, "is_expandable")                                                                                                      \
    X(REGISTRATION_COUNTER, "registration_counter")                                                                                        \
    X(BLOCKS, "blocks")                                                                                                                    \
    X(STATE, "state")                                                                                                                      \
    X(HISTORY, "history")                                                                                                                  \
    X(REAL_SIZE, "real_size")                                                                                                              \
    X(CPP_FRAMES, "cpp_frames")                                                                                                            \
    X(CATEGORY, "category")                                                                                                                \
    X(THREAD, "thread")                                                                                                                    \
    X(PATH, "path")                                                                                                                        \
    X(BUILD_ID, "build_id")                                                                                                                \
    X(STAGE, "stage")                                                                                                                      \
    X(SEGMENTS, "segments")                                                                                                                \
    X(DEVICE_TRACES, "device_traces")                                                                                                      \
    X(ALLOCATOR_SETTINGS, "allocator_settings")                                                                                            \
    X(EXTERNAL_ANNOTATIONS, "external_annotations")                                                                                        \
    X(HOST_SEGMENTS, "host_segments")                                                                                                      \
    X(HOST_TRACES, "host_traces")                                                                                                          \
    X(VRAM_MODULES, "vram_modules")                                                                                                        \
    X(VRAM_POOL_ID_LISTS, "vram_pool_id_lists")                                                                                            \
    X(VRAM_HOST_NESTED, "vram_host_nested")                                                                                                \
    X(TRACE_ALLOC_MAX_ENTRIES, "trace_alloc_max_entries")                                                                                  \
    X(TRACE_ALLOC_OVERFLOWED, "trace_alloc_overflowed")                                                                                    \
    X(SMALL, "small")                                                                                                                      \
    X(LARGE, "large")                                                                                                                      \
    X(INACTIVE, "inactive")                                                                                                                \
    X(ACTIVE_ALLOCATED, "active_allocated")                                                                                                \
    X(ACTIVE_PENDING_FREE, "active_pending_free")                                                                                          \
    X(ACTIVE_AWAITING_FREE, "active_awaiting_free")

// Word 0 is the empty string; the word of an action is its enum vr_action + VR_WORD_FIRST_ACTION.
enum vr_word {
    VR_WORD_EMPTY,
    VR_WORD_FIRST_ACTION,
    VR_WORD_LAST_ACTION = VR_WORD_FIRST_ACTION + VR_ACTION_COUNT - 1,
#define VR_WORD_ENUM(name, text) VR_WORD_##name,
    VR_WORDS(VR_WORD_ENUM)
#undef VR_WORD_ENUM
// Keys of the fields marked LATER.
#define VR_LATER_FIRST(KEY)
#define VR_LATER_LATER(KEY)                                      VR_WORD_##KEY,
#define VR_FIELD(column, type, density, number, LOG, since, KEY) VR_LATER_##since(KEY)
#include "model/entry_fields.def"
#undef VR_LATER_FIRST
#undef VR_LATER_LATER
        VR_WORD_COUNT,
    // Range of the top-level keys that are read.
    VR_WORD_FIRST_TOP = VR_WORD_SEGMENTS,
    VR_WORD_LAST_TOP = VR_WORD_TRACE_ALLOC_OVERFLOWED
};

const char *vr_word_text(enum vr_word word);

#endif
