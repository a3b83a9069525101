// check_findings.h: the findings of a run under `vram check`: reads them, leaves out what a file suppresses, and prints them.
#ifndef CLI_CHECK_FINDINGS_H
#define CLI_CHECK_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct check_frame {
    char *name, *file; // "": unknown
    int64_t line;      // 0: unknown
};

// A use of memory, or the allocation or free of its block. The last three fields are 0 or NULL if it does not exist.
struct check_use {
    uint64_t process; // of the process that has it, if that is not the one that has the finding; else 0
    char effect[8];   // "read", "use" or "write"
    uint64_t stream;
    bool is_default; // it is a default stream
    char *work;
    struct check_frame *frames; // innermost first
    size_t frame_count, frames_capacity;
};

// The launches are of the graphs whose nodes the two uses are.
enum check_role { CHECK_EARLIER, CHECK_EARLIER_LAUNCH, CHECK_LATER, CHECK_LATER_LAUNCH, CHECK_ALLOCATED, CHECK_FREED, CHECK_ROLES };
extern const char *const check_roles[CHECK_ROLES];

struct check_finding {
    char kind[24];
    bool may;
    uint64_t address, size_bytes, block, block_bytes;
    struct check_use uses[CHECK_ROLES];
    bool has[CHECK_ROLES];
    uint64_t away[CHECK_ROLES]; // of a use of another process: its number there
};

// A use that findings of other processes name.
struct check_numbered {
    uint64_t process, number;
    struct check_use use, launch;
    bool has_launch;
};

struct check_findings {
    struct check_finding *items;
    size_t count, items_capacity;
    bool failed;       // a process ran out of memory for the checker
    size_t suppressed; // findings that the file left out
    struct check_numbered *numbered;
    size_t numbered_count, numbered_capacity;
    char **unseen; // kernels and calls of libraries whose memory is not known, each once
    size_t unseen_count, unseen_capacity;
};

// Reads all files of the folder. Equal findings of several processes are one. Returns false if memory runs out.
bool check_findings_read(const char *folder, struct check_findings *findings);
void check_findings_release(struct check_findings *findings);
// Removes the findings that are not certain.
void check_findings_drop_may(struct check_findings *findings);
// Removes the findings that the file names. Returns CLI_OK, or an exit code after a line on standard error.
int check_findings_suppress(struct check_findings *findings, const char *path);

// Returns the call by which the use, earlier or later, happened: the launch of the graph, if it is a node.
const struct check_use *check_call_of(const struct check_finding *finding, enum check_role role);
// Returns whether a frame is Python's.
bool check_frame_is_python(const struct check_frame *frame);
// Returns the frame that a code host shows: the innermost one of Python, else of source code. NULL if there is none.
const struct check_frame *check_use_place(const struct check_use *use);

// --- check_text.c, check_json.c -------------------------------------------------------------------------------------

// Returns one sentence that says what happened, without a full stop, and one that says how to fix it. The caller frees them; NULL if memory
// runs out.
char *check_sentence(const struct check_finding *finding);
char *check_remedy(const struct check_finding *finding);
// Prints the findings on standard error.
void check_text_print(const struct check_findings *findings);
// Prints one JSON object on standard output. Returns an exit code.
int check_json_print(const struct check_findings *findings);
// Writes a SARIF file. Returns CLI_OK, or an exit code after a line on standard error.
int check_sarif_write(const struct check_findings *findings, const char *path);

#endif
