// formats.h: the formats, each with its reader, and the writer of recording files of our own.
#ifndef VR_SNAPSHOT_FORMATS_H
#define VR_SNAPSHOT_FORMATS_H

#include "model/model.h"
#include "snapshot/input.h"
#include "snapshot/pickle_vm.h"
#include "vram/status.h"

// ---- The readers, one per format.

// ---- From what a machine holds when its input is read to a model.

// build_model.c. Makes *model (which must be zeroed, and is when it fails) of the value on top of the machine's stack, and moves the tables
// into it. The machine is of no use afterwards but for vr_machine_release(). BAD_INPUT when the value is no recording; LIMIT,
// NO_HOST_MEMORY.
enum vram_status vr_finish(struct vr_machine *machine, struct vr_model *model);

// ---- Reads the opcodes of Python's pickles. Only data: whatever would make Python call or import something is refused.

// read_pickle.c. Runs the pickle at input->next until its STOP; its value is then the top of the machine's stack, and what follows is left.
// BAD_INPUT (damaged, or not plain data), IO, LIMIT, NO_HOST_MEMORY, with the offset of the opcode in the machine's error.
enum vram_status vr_pickle_read(struct vr_input *input, struct vr_machine *machine);

// ---- Reads JSON into a machine.

// Reads one JSON value and nothing after it but white space; it is then the top of the machine's stack. NaN and Infinity are accepted, as
// Python writes them. BAD_INPUT, IO, LIMIT (nesting beyond 500 levels), NO_HOST_MEMORY, with the offset in the machine's error.
enum vram_status vr_json_read(struct vr_input *input, struct vr_machine *machine);

// ---- Logs of RMM's logging_resource_adaptor.

// How every such log begins.
#define VR_RMM_MAGIC        "Thread,Time,Action,Pointer,Size,Stream"
#define VR_RMM_MAGIC_LENGTH 38

// Reads a log into *model (zeroed; zeroed again on failure). A free is a free_requested and a free_completed, as the log does not tell them
// apart; a failed allocation is an oom. Times are of a day that is not told: microseconds since its midnight, going on after the next one.
// BAD_INPUT names the line; LIMIT, IO, NO_HOST_MEMORY.
enum vram_status vr_rmm_read(struct vr_input *input, struct vr_model *model, struct vram_error *error);

// ---- Traces of PyTorch's profiler (Kineto, Chrome's trace format) with memory events in them.

// Whether JSON that begins so is such a trace: its first key tells.
bool vr_kineto_begins(const unsigned char *text, size_t length);

// Reads a trace into *model (zeroed; zeroed again on failure), of all that is in it only what concerns memory. A `[memory]` event of a
// device with positive bytes is an alloc, with negative ones a free_requested and a free_completed; `[OutOfMemory]` is an oom. Stacks are
// the operators and Python functions of the same thread that were under way. user_annotation becomes marks START and END. BAD_INPUT (also
// for a trace without memory events), LIMIT, IO, NO_HOST_MEMORY.
enum vram_status vr_kineto_read(struct vr_input *input, struct vr_model *model, struct vram_error *error);

// ---- Memory timelines of PyTorch's profiler, as export_memory_timeline("....raw.json.gz") writes them.

// Whether JSON that begins so is one: a list of lists of numbers.
bool vr_timeline_begins(const unsigned char *text, size_t length);

// Reads a timeline into *model (zeroed; zeroed again on failure). A row is [nanoseconds, action, bytes, category]: action 1 (there before)
// and 2 (made) are an alloc, 4 (destroyed; negative bytes) is a free_requested and a free_completed; 3 moves bytes from one category to
// another, in two rows. The timeline names no allocation: a row that destroys ends the newest one of its size and category. Addresses are
// made up, stacks are the category alone. Source: torch/profiler/_memory_profiler.py, export_memory_timeline_raw(). BAD_INPUT (also for a
// row that ends what never began), LIMIT, IO, NO_HOST_MEMORY.
enum vram_status vr_timeline_read(struct vr_input *input, struct vr_model *model, struct vram_error *error);

// ---- Recording files of our own (.vram, docs/reference/formats/recording.md): read into a model, and a model written as one.

// The first bytes of every recording file.
#define VR_VRAMFILE_MAGIC        "\x89VRAM\r\n\x1a"
#define VR_VRAMFILE_MAGIC_LENGTH 8

// Reads a file of our own into *model, which is zeroed when it fails. A file that ends in the middle, or that its program did not close, is
// read as far as it goes: model->ending says so. BAD_INPUT, LIMIT, IO, NO_HOST_MEMORY; *error says what.
enum vram_status vr_vramfile_read(struct vr_input *input, struct vr_model *model, struct vram_error *error);

// Writes the model, which is borrowed, as a complete file into `write` (false from it: IO). Every table, has-bit and order comes back when
// it is read. *error may be NULL. IO, NO_HOST_MEMORY. Any thread.
enum vram_status vr_log_write_model(const struct vr_model *model, vram_write write, void *user, struct vram_error *error);

#endif
