// mcp.h: `vram mcp`, the Model Context Protocol (https://modelcontextprotocol.io/specification/2025-06-18) on standard input and output.
//
// A message is a line of JSON. A tool's answer takes at most MCP_ANSWER_BYTES in the message, because an agent reads all of it. Numbers of
// bytes are exact; the last line suggests the next question. One thread reads and answers. Work that takes longer than MCP_PATIENCE_NS goes
// on in another thread or process, and the answer reports its progress (mcp_tuning.c, mcp_program.c).
#ifndef CLI_MCP_H
#define CLI_MCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "vram/status.h"

struct cJSON; // parses messages of agents and answers of the explorer
struct vr_json;
struct vram_explorer;
struct vram_recording;
struct vram_report;

#define MCP_ANSWER_BYTES 4096
#ifdef __wasm__
#define MCP_PATIENCE_NS UINT64_C(10000000000) // no thread continues after an answer
#else
#define MCP_PATIENCE_NS UINT64_C(400000000)
#endif
#define MCP_OPEN_MOST 4 // recordings; a new one replaces the least recently used

// --- an answer ---------------------------------------------------------------------------------------------------------------------------

// The lines of an answer, with room kept for the last ("next: ..."). Foreign text also goes through mcp_line(), which makes control
// characters visible, so that a recording cannot forge lines.
struct mcp_answer {
    char text[MCP_ANSWER_BYTES];
    size_t length;
    size_t cost;     // bytes of text[0, length) in the message, including escapes
    uint64_t missed; // lines dropped for lack of room
    char next[256];  // without "next: "; "" if none
    uint64_t about;  // 1 + the device of the answer, if the recording has several; 0: none
    bool is_error;
};

void mcp_line(struct mcp_answer *answer, const char *format, ...) VRAM_PRINTF(2, 3);
// Sets the suggested next question. The last call wins.
void mcp_next(struct mcp_answer *answer, const char *format, ...) VRAM_PRINTF(2, 3);
// Marks the answer, and its next question, as about this one of several devices.
void mcp_about(struct mcp_answer *answer, uint32_t device);
// Replaces the answer by this message and marks it as a failure.
void mcp_fail(struct mcp_answer *answer, const char *format, ...) VRAM_PRINTF(2, 3);
// Appends the last lines: how many were dropped, and the next question. Call once, at the end.
void mcp_end(struct mcp_answer *answer);

#define MCP_BYTES_CAPACITY 64
// Writes "18,957,266,944 B (17.7 GiB)". Returns text.
const char *mcp_bytes(uint64_t bytes, char text[MCP_BYTES_CAPACITY]);
// Writes "1,234,567". Returns text.
const char *mcp_number(uint64_t number, char text[MCP_BYTES_CAPACITY]);
// Writes "1 block" or "2,345 blocks". Returns text.
const char *mcp_counted(uint64_t number, const char *noun, char text[MCP_BYTES_CAPACITY]);

// --- recordings --------------------------------------------------------------------------------------------------------------------------

struct mcp_recording {
    unsigned id; // "r1" is 1; 0: a free slot
    char *path;
    uint64_t bytes;
    uint64_t asked;                       // the server's call count at the last use
    bool held;                            // in use by a search, so do not close it
    uint64_t stamp_ns, file_bytes, inode; // of the file when it was read; a changed file is read again
    struct vram_recording *recording;
    struct vram_report *report;
    struct vram_explorer *explorer; // NULL until first used; then owns the recording
};

struct mcp_tuning;
struct mcp_program;

struct mcp_server {
    struct mcp_recording open[MCP_OPEN_MOST];
    unsigned ids;
    uint64_t calls;
    bool ready;       // initialize has been answered
    bool no_programs; // `fit` is not offered
    struct mcp_tuning *tuning;
    struct mcp_program *program;
};

// Returns the recording that the argument `name` of a call gives: a path, or the id ("r1") of an open one. Returns NULL, with a failed
// answer, if it cannot be opened. The result is valid until the second next call.
struct mcp_recording *mcp_recording(struct mcp_server *server, const struct cJSON *arguments, const char *name, struct mcp_answer *answer);
// Returns the recording of `wanted`, the value of the argument `name`, as mcp_recording() does.
struct mcp_recording *mcp_recording_of(struct mcp_server *server, const char *wanted, const char *name, struct mcp_answer *answer);
void mcp_close(struct mcp_recording *recording);
// Queries the recording's explorer. Returns the answer's JSON, which the caller frees with cJSON_Delete(); NULL, with a failed answer, if
// the query is refused.
struct cJSON *mcp_ask(struct mcp_recording *recording, struct mcp_answer *answer, const char *format, ...) VRAM_PRINTF(3, 4);
// Finds allocations that match `text` (query `search`). Stores the first `capacity` row numbers, and the total in *count. Returns false
// with a failed answer.
bool mcp_search(struct mcp_recording *recording, uint32_t device, const char *text, uint64_t *rows, size_t capacity, uint64_t *count,
                struct mcp_answer *answer);
// Percent-encodes `text` as a value of a query. Cuts it at the capacity.
void mcp_encode(const char *text, char *encoded, size_t capacity);
// Adds at most `most` frames of the call stack in an answer to `allocation` or `event`, innermost first.
void mcp_frames(struct mcp_answer *answer, const struct cJSON *json, int most);
// Adds what paged memory would have saved on this device, or on each (-1). Adds nothing if the saving is zero or takes too long to compute.
void mcp_say_saving(struct mcp_answer *answer, const struct mcp_recording *open, int64_t device);
// Adds the first `most` remedies of a demand, each with the figures behind it. Accepts NULL.
struct vram_report_demand;
void mcp_say_remedies(struct mcp_answer *answer, const struct vram_report_demand *demand, size_t most);
// Returns the device that the argument `device` names, else the one in trouble, and makes the next question about it. Returns NULL with a
// failed answer.
const struct vram_report_device *mcp_device(const struct mcp_recording *recording, const struct cJSON *arguments,
                                            struct mcp_answer *answer);

// --- arguments ---------------------------------------------------------------------------------------------------------------------------

const char *mcp_text(const struct cJSON *arguments, const char *name, const char *otherwise);
// Reads a whole number from `least` to `most`. Leaves *number unchanged if the argument is absent. Returns false, with a failed answer, if
// it is invalid.
bool mcp_count(const struct cJSON *arguments, const char *name, int64_t least, int64_t most, int64_t *number, struct mcp_answer *answer);
// Reads bytes, given as a number or as text such as "24GiB". Returns false and leaves *bytes unchanged as mcp_count() does.
bool mcp_size(const struct cJSON *arguments, const char *name, uint64_t *bytes, struct mcp_answer *answer);

// Reads the arguments device, at, by, regex and top as the commands do. The options borrow the texts in `at` and `device`. Returns false
// with a failed answer.
struct vram_profile_options;
bool mcp_moment(const struct cJSON *arguments, char at[32], char device[32], struct vram_profile_options *options,
                struct mcp_answer *answer);

// --- JSON of the library -----------------------------------------------------------------------------------------------------------------

// Collects what a function of vram/profile.h writes (vram_write).
struct mcp_kept {
    char *bytes;
    size_t length;
};
bool mcp_keep(void *user, const char *bytes, size_t length);
// Parses and frees the collected bytes. The caller frees the result with cJSON_Delete(). Returns NULL with a failed answer.
struct cJSON *mcp_parsed(enum vram_status status, struct mcp_kept *kept, const struct vram_error *error, struct mcp_answer *answer);
// Returns a whole number of the object; 0 if absent.
uint64_t mcp_whole(const struct cJSON *object, const char *name);

// --- tools and messages ------------------------------------------------------------------------------------------------------------------

typedef void mcp_tool(struct mcp_server *server, const struct cJSON *arguments, struct mcp_answer *answer);
#define MCP_TOOL(name, ...) mcp_tool mcp_tool_##name;
#define MCP_ARGUMENT(...)
#include "mcp_tools.def"
#undef MCP_TOOL
#undef MCP_ARGUMENT

// Writes the member "tools" of the answer to `tools/list`.
void mcp_tools_list(const struct mcp_server *server, struct vr_json *json);
// Runs the named tool. Returns false if it does not exist.
bool mcp_tools_call(struct mcp_server *server, const char *name, const struct cJSON *arguments, struct mcp_answer *answer);

// Answers one message of `length` bytes with a line to `out`; notifications get no answer. Returns false if `out` cannot be written.
bool mcp_message(struct mcp_server *server, const char *text, size_t length, FILE *out);
void mcp_server_end(struct mcp_server *server);
void mcp_tuning_end(struct mcp_server *server);
void mcp_program_end(struct mcp_server *server);

#endif
