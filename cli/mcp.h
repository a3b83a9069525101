// mcp.h: `vram mcp`, the Model Context Protocol (https://modelcontextprotocol.io/specification/2025-06-18) on standard input and output.
//
// A message is a line of JSON. A tool's answer is at most MCP_ANSWER_BYTES long, as the line that is sent: an agent reads it whole. Numbers
// of bytes are exact; the last line says what to ask next. One thread reads and answers; what takes longer than MCP_PATIENCE_NS goes on
// in another thread, and the answer says how far it is (mcp_tuning.c, mcp_fit.c).
#ifndef CLI_MCP_H
#define CLI_MCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "vram/status.h"

struct cJSON; // the reader of what agents and the explorer say
struct vr_json;
struct vram_explorer;
struct vram_recording;
struct vram_report;

#define MCP_ANSWER_BYTES 4096
#ifdef __wasm__
#define MCP_PATIENCE_NS UINT64_C(10000000000) // no thread goes on after an answer
#else
#define MCP_PATIENCE_NS UINT64_C(400000000)
#endif
#define MCP_OPEN_MOST 4 // recordings; the one that was not asked for the longest time makes room

// --- an answer ---------------------------------------------------------------------------------------------------------------------------

// Lines, the last of which ("next: ...") has its place kept. Text of strangers goes in by mcp_line() too: control characters are made
// visible, so that a recording cannot draw lines of its own.
struct mcp_answer {
    char text[MCP_ANSWER_BYTES];
    size_t length;
    size_t cost;     // of text[0, length) in the message, where quotes and the like take more than a byte
    uint64_t missed; // lines that had no room any more
    char next[256];  // without "next: "; "": none
    uint64_t about;  // 1 + the device that the answer is about, where the recording has several; 0: none
    bool is_error;
};

void mcp_line(struct mcp_answer *answer, const char *format, ...) VRAM_PRINTF(2, 3);
// What to ask next; the last call counts.
void mcp_next(struct mcp_answer *answer, const char *format, ...) VRAM_PRINTF(2, 3);
// The answer is about this device of several: so is what is asked next.
void mcp_about(struct mcp_answer *answer, uint32_t device);
// The answer is only this sentence, and says that the tool failed.
void mcp_fail(struct mcp_answer *answer, const char *format, ...) VRAM_PRINTF(2, 3);
// The last lines: what had no room, and what is next. Then the text is whole.
void mcp_end(struct mcp_answer *answer);

#define MCP_BYTES_CAPACITY 64
// "18,957,266,944 B (17.7 GiB)"; returns text.
const char *mcp_bytes(uint64_t bytes, char text[MCP_BYTES_CAPACITY]);
// "1,234,567"; returns text.
const char *mcp_number(uint64_t number, char text[MCP_BYTES_CAPACITY]);
// "1 block", "2,345 blocks"; returns text.
const char *mcp_counted(uint64_t number, const char *noun, char text[MCP_BYTES_CAPACITY]);

// --- recordings --------------------------------------------------------------------------------------------------------------------------

struct mcp_recording {
    unsigned id; // "r1" is 1; 0: the place is free
    char *path;
    uint64_t bytes;
    uint64_t asked;                       // the server's count of calls when it was asked for last
    bool held;                            // a search reads it: it is not closed before
    uint64_t stamp_ns, file_bytes, inode; // of the file when it was read: a changed one is read again
    struct vram_recording *recording;
    struct vram_report *report;
    struct vram_explorer *explorer; // has a recording of its own; NULL until it is asked
};

struct mcp_tuning;
struct mcp_fit;

struct mcp_server {
    struct mcp_recording open[MCP_OPEN_MOST];
    unsigned ids;
    uint64_t calls;
    bool ready;       // initialize was answered
    bool no_programs; // `fit` is not offered
    struct mcp_tuning *tuning;
    struct mcp_fit *fit;
};

// The recording that the argument `name` of a call means: a path, or the id ("r1") of one that is open. NULL, with a failed answer, when it
// cannot be had. What it points to stays until the second next call.
struct mcp_recording *mcp_recording(struct mcp_server *server, const struct cJSON *arguments, const char *name, struct mcp_answer *answer);
// The same by what the argument `name` says.
struct mcp_recording *mcp_recording_of(struct mcp_server *server, const char *wanted, const char *name, struct mcp_answer *answer);
void mcp_close(struct mcp_recording *recording);
// Asks the recording's explorer; the answer's JSON is given to the caller (cJSON_Delete). NULL, with a failed answer, for a query that it
// refuses.
struct cJSON *mcp_ask(struct mcp_recording *recording, struct mcp_answer *answer, const char *format, ...) VRAM_PRINTF(3, 4);
// The allocations that `text` finds (query `search`): the numbers of the first `capacity`, and how many there are. False with a failed
// answer.
bool mcp_search(struct mcp_recording *recording, uint32_t device, const char *text, uint64_t *rows, size_t capacity, uint64_t *count,
                struct mcp_answer *answer);
// `text` as a value of a query, percent-encoded; cut where the room ends.
void mcp_encode(const char *text, char *encoded, size_t capacity);
// The frames of a call stack in an answer to `allocation` or `event`, innermost first, at most so many.
void mcp_frames(struct mcp_answer *answer, const struct cJSON *json, int most);
// What paged memory would have saved on this device, or (-1) on each: nothing where there is nothing to gain, or it takes too long to say.
void mcp_say_saving(struct mcp_answer *answer, const struct mcp_recording *open, int64_t device);
// The first `most` remedies of a demand, each with what it was computed from; nothing for NULL.
struct vram_report_demand;
void mcp_say_remedies(struct mcp_answer *answer, const struct vram_report_demand *demand, size_t most);
// The device of a report that the argument `device` names, else the one in trouble: what is asked next is about it, too. NULL with a
// failed answer.
const struct vram_report_device *mcp_device(const struct mcp_recording *recording, const struct cJSON *arguments,
                                            struct mcp_answer *answer);

// --- arguments ---------------------------------------------------------------------------------------------------------------------------

const char *mcp_text(const struct cJSON *arguments, const char *name, const char *otherwise);
// False, with a failed answer, when it is there and no whole number from least to most.
bool mcp_count(const struct cJSON *arguments, const char *name, int64_t least, int64_t most, int64_t *number, struct mcp_answer *answer);
// Bytes as a number, or as a text such as "24GiB". False as above; *bytes stays when it is absent.
bool mcp_size(const struct cJSON *arguments, const char *name, uint64_t *bytes, struct mcp_answer *answer);

// The arguments device, at, by, regex and top as the commands take them; at and device are room for texts that the options borrow. False
// with a failed answer.
struct vram_profile_options;
bool mcp_moment(const struct cJSON *arguments, char at[32], char device[32], struct vram_profile_options *options,
                struct mcp_answer *answer);

// --- JSON of the library -----------------------------------------------------------------------------------------------------------------

// What a function of vram/profile.h writes (vram_write).
struct mcp_kept {
    char *bytes;
    size_t length;
};
bool mcp_keep(void *user, const char *bytes, size_t length);
// What was kept, which is freed; given to the caller (cJSON_Delete). NULL with a failed answer.
struct cJSON *mcp_parsed(enum vram_status status, struct mcp_kept *kept, const struct vram_error *error, struct mcp_answer *answer);
// A whole number of the object; 0 where it has none.
uint64_t mcp_whole(const struct cJSON *object, const char *name);

// --- tools and messages ------------------------------------------------------------------------------------------------------------------

typedef void mcp_tool(struct mcp_server *server, const struct cJSON *arguments, struct mcp_answer *answer);
#define MCP_TOOL(name, ...) mcp_tool mcp_tool_##name;
#define MCP_ARGUMENT(...)
#include "mcp_tools.def"
#undef MCP_TOOL
#undef MCP_ARGUMENT

// Writes the tools as `tools/list` gives them: the member "tools".
void mcp_tools_list(const struct mcp_server *server, struct vr_json *json);
// Runs the named tool. False when there is none.
bool mcp_tools_call(struct mcp_server *server, const char *name, const struct cJSON *arguments, struct mcp_answer *answer);

// Answers one message of `length` bytes. The answer goes to `out` as one line; notifications have none. False when `out` took no more.
bool mcp_message(struct mcp_server *server, const char *text, size_t length, FILE *out);
void mcp_server_end(struct mcp_server *server);
void mcp_tuning_end(struct mcp_server *server);
void mcp_fit_end(struct mcp_server *server);

#endif
