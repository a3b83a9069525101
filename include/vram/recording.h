// vram/recording.h: a recording of device memory, read from a file.
//
// A recording is what PyTorch's memory snapshot holds: segments and blocks, the history of every device, settings and
// annotations. The reader knows the pickles that PyTorch writes (both writers, protocols 2 to 5), the same data as JSON, bare
// lists of segments, HTML pages with a pickle inside, and vram's own files (.vram); it tells them apart by their first bytes. Nothing in a
// file is ever executed, and no file makes the reader hold more than a few times its size. A recording is immutable: any number of threads
// may use it at once.
#ifndef VRAM_RECORDING_H
#define VRAM_RECORDING_H

#include <stdbool.h>
#include <stddef.h>

#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_recording;

// Where bytes come from. read() puts at most `capacity` bytes into `buffer` and returns how many, 0 at the end, SIZE_MAX when
// it cannot read on. `name` stands in messages; NULL for none. `bytes`: how many there will be, where the caller knows; tables are then
// made as large as they will have to be; 0 for not known. A number that is wrong changes nothing else. Borrowed for the length of one call.
struct vram_input {
    size_t (*read)(void *context, void *buffer, size_t capacity);
    void *context;
    const char *name;
    uint64_t bytes;
};

// Reads one recording to its end. *recording is given to the caller: vram_recording_destroy(). BAD_INPUT for what is no
// recording, LIMIT for a file that unpacks to far more than its size, IO when read() fails, NO_HOST_MEMORY; *error (may be
// NULL) says what, and its offset is the byte of the input (of the embedded data, for an HTML page). Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_recording_read(const struct vram_input *input, struct vram_recording **recording,
                                                             struct vram_error *error);
// The same from `size` bytes at `data`, which are borrowed for the call. `name` may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_recording_read_memory(const void *data, size_t size, const char *name,
                                                                    struct vram_recording **recording, struct vram_error *error);
// The same from the plain file at `path`. IO also when it cannot be opened.
VRAM_API VRAM_NODISCARD enum vram_status vram_recording_read_file(const char *path, struct vram_recording **recording,
                                                                  struct vram_error *error);
// Takes the recording back. NULL is ignored.
VRAM_API void vram_recording_destroy(struct vram_recording *recording);

// The two shapes: a dictionary with history and settings, or a bare list of segments.
enum vram_recording_form { VRAM_RECORDING_DICT, VRAM_RECORDING_SEGMENT_LIST };
VRAM_API enum vram_recording_form vram_recording_form(const struct vram_recording *recording);
// How the file ended. OPEN and CUT are only of vram's own files (docs/reference/formats/recording.md).
enum vram_recording_ending {
    VRAM_RECORDING_WHOLE, // as it should
    VRAM_RECORDING_OPEN,  // not closed: the program was killed or writes still; everything recorded until then is there
    VRAM_RECORDING_CUT    // in the middle, or damaged there: what stood before that is there
};
VRAM_API enum vram_recording_ending vram_recording_ending(const struct vram_recording *recording);
// One more than the largest device ordinal that has a segment or an event; 0 for an empty recording.
VRAM_API uint32_t vram_recording_device_count(const struct vram_recording *recording);
// Whether a device number of this recording stands for pinned host memory, not for a GPU. False for a device that is not there.
VRAM_API bool vram_recording_device_is_host(const struct vram_recording *recording, uint32_t device);
// Events of `device`, or of all devices for VRAM_ALL_DEVICES. 0 for a device that is not there.
#define VRAM_ALL_DEVICES UINT32_MAX
VRAM_API uint64_t vram_recording_event_count(const struct vram_recording *recording, uint32_t device);
// Segments and blocks of all devices.
VRAM_API uint64_t vram_recording_segment_count(const struct vram_recording *recording);
VRAM_API uint64_t vram_recording_block_count(const struct vram_recording *recording);
// The JSON text of a key of allocator_settings ("true", "-1", "\"expandable_segments:True\""), or NULL. Borrowed from the recording.
VRAM_API const char *vram_recording_setting(const struct vram_recording *recording, const char *key);

#ifdef __cplusplus
}
#endif
#endif
