// formats.h: the reader of each format, and the writer of vram's own recording files.
#ifndef VR_SNAPSHOT_FORMATS_H
#define VR_SNAPSHOT_FORMATS_H

#include "model/model.h"
#include "snapshot/input.h"
#include "snapshot/pickle_vm.h"
#include "vram/status.h"

// ---- The readers, one per format.

// ---- Turns the values in a machine into a model.

// build_model.c. Builds *model (zeroed; zeroed again on failure) from the value on top of the machine's stack, and moves the tables into
// it. Afterwards the machine can only be released. BAD_INPUT if the value is not a recording; LIMIT, NO_HOST_MEMORY.
enum vram_status vr_finish(struct vr_machine *machine, struct vr_model *model);

// ---- Reads Python's pickles as data only: refuses every opcode that would make Python call or import something.

// read_pickle.c. Runs the pickle at input->next until its STOP, leaving its value on top of the machine's stack and the following bytes
// unread. BAD_INPUT (damaged, or not plain data), IO, LIMIT, NO_HOST_MEMORY, with the offset of the opcode in the machine's error.
enum vram_status vr_pickle_read(struct vr_input *input, struct vr_machine *machine);

// ---- Reads JSON into a machine.

// Reads one JSON value, which must be followed by white space only, and leaves it on top of the machine's stack. Accepts NaN and Infinity
// as Python writes them. BAD_INPUT, IO, LIMIT (nested deeper than 500 levels), NO_HOST_MEMORY, with the offset in the machine's error.
enum vram_status vr_json_read(struct vr_input *input, struct vr_machine *machine);

// ---- Logs of RMM's logging_resource_adaptor.

// The first bytes of every such log.
#define VR_RMM_MAGIC        "Thread,Time,Action,Pointer,Size,Stream"
#define VR_RMM_MAGIC_LENGTH 38

// Reads a log into *model (zeroed; zeroed again on failure). A free becomes a free_requested and a free_completed, because the log does not
// distinguish them; a failed allocation becomes an oom. Times are microseconds since midnight of an unknown day, and continue past the next
// midnight. BAD_INPUT names the line; LIMIT, IO, NO_HOST_MEMORY.
enum vram_status vr_rmm_read(struct vr_input *input, struct vr_model *model, struct vram_error *error);

// ---- Traces of PyTorch's profiler (Kineto, Chrome's trace format) with memory events.

// Returns whether the beginning of a JSON text is that of such a trace, by its first key.
bool vr_kineto_begins(const unsigned char *text, size_t length);

// Reads the memory-related parts of a trace into *model (zeroed; zeroed again on failure). A `[memory]` event of a device with positive
// bytes becomes an alloc, with negative bytes a free_requested and a free_completed; `[OutOfMemory]` becomes an oom. Stacks are the
// operators and Python functions running on the same thread. A user_annotation becomes the marks START and END. BAD_INPUT (also for a trace
// without memory events), LIMIT, IO, NO_HOST_MEMORY.
enum vram_status vr_kineto_read(struct vr_input *input, struct vr_model *model, struct vram_error *error);

// ---- Memory timelines of PyTorch's profiler, as written by export_memory_timeline("....raw.json.gz").

// Returns whether the beginning of a JSON text is that of a timeline: a list of lists of numbers.
bool vr_timeline_begins(const unsigned char *text, size_t length);

// Reads a timeline into *model (zeroed; zeroed again on failure). A row is [nanoseconds, action, bytes, category]. Actions 1 (existed
// before) and 2 (created) become an alloc, 4 (destroyed; negative bytes) a free_requested and a free_completed; 3 moves bytes from one
// category to another, in two rows. The timeline does not identify allocations: a row that destroys ends the newest one of its size and
// category. Addresses are invented, stacks consist of the category. Source: torch/profiler/_memory_profiler.py,
// export_memory_timeline_raw(). BAD_INPUT (also for a row that destroys what never existed), LIMIT, IO, NO_HOST_MEMORY.
enum vram_status vr_timeline_read(struct vr_input *input, struct vr_model *model, struct vram_error *error);

// ---- vram's own recording files (.vram, docs/reference/formats/recording.md): read into a model, and written from one.

// The first bytes of every recording file.
#define VR_VRAMFILE_MAGIC        "\x89VRAM\r\n\x1a"
#define VR_VRAMFILE_MAGIC_LENGTH 8

// Reads a recording file of vram into *model, zeroed on failure. A truncated file, or one that its program did not close, is read as far as
// possible: see model->ending. BAD_INPUT, LIMIT, IO, NO_HOST_MEMORY; *error explains the failure.
enum vram_status vr_vramfile_read(struct vr_input *input, struct vr_model *model, struct vram_error *error);

// Writes the model, which is borrowed, as a complete file (IO if `write` returns false). Reading it restores every table, has-bit and
// order. *error may be NULL. IO, NO_HOST_MEMORY. Any thread.
enum vram_status vr_log_write_model(const struct vr_model *model, vram_write write, void *user, struct vram_error *error);

#endif
