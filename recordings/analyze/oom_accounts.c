#include "analyze/report_parts.h"
#include "vram/accounts.h"

#include <stdio.h>

#include "snapshot/scan.h"

#define PREFIX      "vram_accounts_"
#define MOST_SLOTS  16u
#define MOST_LISTED 128u
#define NAME_BYTES  64u
#define WHY_BYTES   256u
#define NOT_KNOWN   UINT64_MAX
#define MOST_BYTES  (UINT64_MAX / 1024) // of one process; a larger number is not a size

bool vr_is_fact(const char *key) { return strncmp(key, "vram_", 5) == 0; }

// --- reading ------------------------------------------------------------------------------------------------------------------

struct written_process {
    uint64_t id, bytes;
    char name[NAME_BYTES];
};

// The contents of one setting. Sizes are NOT_KNOWN for null, other values, and invalid sizes.
struct written_accounts {
    uint64_t device, context_bytes, module_bytes, at_start_bytes, self_bytes, left_out;
    int64_t time_us;
    bool has_time, has_self, has_processes;
    char why[WHY_BYTES];
    struct written_process processes[MOST_LISTED];
    size_t process_count;
};

static uint64_t size_of_number(const struct vr_scan_value *value) {
    const bool whole = value->kind == VR_SCAN_NUMBER && value->number.kind == VR_NUMERAL_WHOLE && !value->number.negative;
    return whole && value->number.bits <= MOST_BYTES ? value->number.bits : NOT_KNOWN;
}

// Copies a string as printable ASCII, with '?' for other characters, cut to fit; "" for other values.
static void copy_string(const struct vr_scan_value *value, char *string, size_t capacity) {
    size_t length = 0;
    for (size_t i = 0; value->kind == VR_SCAN_STRING && i < value->length && length + 1 < capacity; i++) {
        const unsigned char byte = (unsigned char)value->text[i];
        if ((byte & 0xc0) == 0x80) continue; // continues a UTF-8 character
        string[length++] = byte >= 0x20 && byte <= 0x7e ? (char)byte : '?';
    }
    string[length] = '\0';
}

static enum vram_status read_process(struct vr_scan *scan, struct written_process *process) {
    char key[16];
    bool first = true, more = true;
    *process = (struct written_process){.id = NOT_KNOWN, .bytes = NOT_KNOWN};
    VR_TRY(vr_scan_open(scan, '{'));
    for (;;) {
        struct vr_scan_value value;
        VR_TRY(vr_scan_member(scan, &first, key, sizeof key, &more));
        if (!more) return VRAM_OK;
        VR_TRY(vr_scan_value(scan, &value));
        if (strcmp(key, "pid") == 0) process->id = size_of_number(&value);
        if (strcmp(key, "bytes") == 0) process->bytes = size_of_number(&value);
        if (strcmp(key, "name") == 0) copy_string(&value, process->name, sizeof process->name);
    }
}

static enum vram_status read_processes(struct vr_scan *scan, struct written_accounts *written) {
    bool first = true, more = true;
    int byte;
    VR_TRY(vr_scan_open(scan, '['));
    for (;;) {
        VR_TRY(vr_scan_item(scan, &first, &more));
        if (!more) return VRAM_OK;
        VR_TRY(vr_scan_peek(scan, &byte));
        if (byte != '{' || written->process_count == MOST_LISTED) {
            VR_TRY(vr_scan_skip(scan));
            continue;
        }
        struct written_process *process = &written->processes[written->process_count];
        VR_TRY(read_process(scan, process));
        written->process_count += process->id != NOT_KNOWN;
    }
}

static enum vram_status read_member(struct vr_scan *scan, const char *key, struct written_accounts *written) {
    const struct {
        const char *key;
        uint64_t *bytes;
    } sizes[] = {{"device", &written->device},
                 {"context_bytes", &written->context_bytes},
                 {"module_bytes", &written->module_bytes},
                 {"at_start_bytes", &written->at_start_bytes},
                 {"self_bytes", &written->self_bytes},
                 {"left_out", &written->left_out}};
    struct vr_scan_value value;
    int byte;
    VR_TRY(vr_scan_peek(scan, &byte));
    written->has_processes = written->has_processes || strcmp(key, "processes") == 0;
    if (byte == '[' && strcmp(key, "processes") == 0) return read_processes(scan, written);
    if (strcmp(key, "has_self") == 0) written->has_self = byte == 't';
    VR_TRY(vr_scan_value(scan, &value));
    for (size_t i = 0; i < VR_COUNT_OF(sizes); i++)
        if (strcmp(key, sizes[i].key) == 0) *sizes[i].bytes = size_of_number(&value);
    if (strcmp(key, "why") == 0) copy_string(&value, written->why, sizeof written->why);
    if (strcmp(key, "time_us") != 0) return VRAM_OK;
    written->has_time = true;
    written->time_us = value.kind == VR_SCAN_NUMBER && value.number.kind == VR_NUMERAL_WHOLE ? (int64_t)value.number.bits : INT64_MIN;
    return VRAM_OK;
}

static enum vram_status read_written(struct vr_scan *scan, struct written_accounts *written) {
    char key[32];
    bool first = true, more = true;
    int byte;
    VR_TRY(vr_scan_open(scan, '{'));
    for (;;) {
        VR_TRY(vr_scan_member(scan, &first, key, sizeof key, &more));
        if (!more) break;
        VR_TRY(read_member(scan, key, written));
    }
    VR_TRY(vr_scan_peek(scan, &byte));
    return byte == 0 ? VRAM_OK : VRAM_BAD_INPUT;
}

// Parses one setting. *good is false if it is not an account. NO_HOST_MEMORY.
static enum vram_status read_accounts_text(const char *text, struct written_accounts *written, bool *good) {
    struct vr_input input;
    struct vram_error error;
    struct vr_scan scan = {.input = &input, .error = &error};
    *written = (struct written_accounts){.device = NOT_KNOWN,
                                         .context_bytes = NOT_KNOWN,
                                         .module_bytes = NOT_KNOWN,
                                         .at_start_bytes = NOT_KNOWN,
                                         .self_bytes = NOT_KNOWN,
                                         .left_out = NOT_KNOWN};
    vr_input_on_memory(&input, text, strlen(text));
    const enum vram_status status = read_written(&scan, written);
    vr_scan_release(&scan);
    *good = status == VRAM_OK;
    return status == VRAM_NO_HOST_MEMORY ? status : VRAM_OK;
}

// --- selection ------------------------------------------------------------------------------------------------------------------

// Returns whether the account is of this device and this event: the event with its time or, if it has no time, the last one.
static bool accounts_belong(const struct written_accounts *written, uint32_t device, const struct vram_report_oom *oom, bool is_last) {
    if (written->device != device) return false;
    return written->has_time ? oom->has_time && written->time_us == oom->time_us : is_last;
}

static enum vram_status find_written(const struct vr_view *view, const struct vram_report_oom *oom, bool is_last,
                                     struct written_accounts *written, bool *found) {
    *found = false;
    for (unsigned slot = 0; slot < MOST_SLOTS && !*found; slot++) {
        char key[32];
        (void)snprintf(key, sizeof key, PREFIX "%u", slot);
        const char *text = vr_model_setting(view->model, key);
        if (text == NULL) continue;
        VR_TRY(read_accounts_text(text, written, found));
        *found = *found && accounts_belong(written, view->device, oom, is_last);
    }
    return VRAM_OK;
}

static enum vram_status keep_processes(const struct written_accounts *written, struct vr_arena *arena, struct vram_report_accounts *made) {
    void *room;
    VR_TRY(vr_arena_array(arena, MOST_LISTED, sizeof(struct vram_report_process), &room));
    struct vram_report_process *processes = room;
    for (size_t i = 0; i < written->process_count; i++) {
        const struct written_process *process = &written->processes[i];
        processes[i] = (struct vram_report_process){.id = process->id, .bytes = process->bytes};
        VR_TRY(vr_arena_copy(arena, process->name, strlen(process->name), &processes[i].name));
    }
    made->processes = processes;
    made->process_count = written->process_count;
    made->left_out = written->left_out == NOT_KNOWN ? 0 : written->left_out;
    return VRAM_OK;
}

// --- distribution -----------------------------------------------------------------------------------------------------------------

static uint64_t take_share(uint64_t *rest, uint64_t wanted) {
    const uint64_t taken = wanted < *rest ? wanted : *rest;
    *rest -= taken;
    return taken;
}

// Distributes the outside bytes. self_bytes: this process's total according to NVML, or NOT_KNOWN.
static void share_out(const struct vram_report_oom *oom, uint64_t held, uint64_t self_bytes, uint64_t context_bytes, uint64_t module_bytes,
                      struct vram_report_accounts *made) {
    uint64_t rest = oom->outside_bytes, listed = 0;
    made->has_context = context_bytes != NOT_KNOWN;
    made->has_modules = module_bytes != NOT_KNOWN;
    made->has_self = self_bytes != NOT_KNOWN;
    made->context_bytes = made->has_context ? take_share(&rest, context_bytes) : 0;
    made->module_bytes = made->has_modules ? take_share(&rest, module_bytes) : 0;
    const uint64_t own_bytes = held + made->context_bytes + made->module_bytes;
    made->driver_bytes = made->has_self && self_bytes > own_bytes ? take_share(&rest, self_bytes - own_bytes) : 0;
    for (size_t i = 0; i < made->process_count; i++) listed += made->processes[i].bytes == NOT_KNOWN ? 0 : made->processes[i].bytes;
    // If this process cannot be identified in the list, subtract its known memory from the list's total.
    if (made->has_processes && !made->apart) listed -= listed < own_bytes ? listed : own_bytes;
    made->other_bytes = take_share(&rest, listed);
    made->unknown_bytes = rest;
}

static enum vram_status make_accounts(const struct written_accounts *written, const struct vram_report_oom *oom, bool driver_level,
                                      struct vr_arena *arena, const struct vram_report_accounts **accounts) {
    void *room;
    VR_TRY(vr_arena_array(arena, 1, sizeof(struct vram_report_accounts), &room));
    struct vram_report_accounts *made = room;
    VR_TRY(vr_arena_copy(arena, written->why, strlen(written->why), &made->why));
    made->has_processes = written->has_processes;
    made->apart = written->has_self;
    made->at_start_bytes = written->at_start_bytes;
    if (written->has_processes) VR_TRY(keep_processes(written, arena, made));
    // This process holds memory on the device, so an empty list means that NVML does not see processes.
    if (written->has_processes && made->process_count == 0 && made->left_out == 0 && !made->apart) {
        made->has_processes = false;
        made->why = "NVML lists no processes on the device, as in many containers";
    }
    share_out(oom, vr_oom_held(oom, driver_level), written->self_bytes, written->context_bytes, written->module_bytes, made);
    *accounts = made;
    return VRAM_OK;
}

enum vram_status vr_accounts_find(const struct vr_view *view, const struct vram_report_oom *oom, bool is_last, bool driver_level,
                                  struct vr_arena *arena, const struct vram_report_accounts **accounts) {
    struct written_accounts *written = malloc(sizeof *written);
    bool found = false;
    *accounts = NULL;
    enum vram_status status = written == NULL ? VRAM_NO_HOST_MEMORY : find_written(view, oom, is_last, written, &found);
    if (status == VRAM_OK && found) status = make_accounts(written, oom, driver_level, arena, accounts);
    free(written);
    return status;
}
