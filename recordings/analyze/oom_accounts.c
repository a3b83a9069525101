#include "analyze/oom_accounts.h"
#include "vram/accounts.h"

#include <stdio.h>

#define PREFIX      "vram_accounts_"
#define MOST_SLOTS  16u
#define MOST_LISTED 128u
#define NAME_BYTES  64u
#define NOT_KNOWN   UINT64_MAX
#define MOST_BYTES  (UINT64_MAX / 1024) // of one process; more is no number of bytes

bool vr_is_fact(const char *key) { return strncmp(key, "vram_", 5) == 0; }

// --- reading ------------------------------------------------------------------------------------------------------------------
// The value is an object of JSON with no key twice. A key cannot be mistaken for a part of a string: quotes in strings are escaped.

// Where the value of `key` begins, in [text, end); NULL where it has none.
static const char *value_of(const char *text, const char *end, const char *key) {
    char quoted[32];
    const int length = snprintf(quoted, sizeof quoted, "\"%s\"", key);
    const char *at = strstr(text, quoted);
    if (at == NULL || at >= end) return NULL;
    at += length;
    at += strspn(at, " \t\r\n");
    if (*at != ':') return NULL;
    at++;
    return at + strspn(at, " \t\r\n");
}

static bool is_true(const char *text, const char *end, const char *key) {
    const char *value = value_of(text, end, key);
    return value != NULL && strncmp(value, "true", 4) == 0;
}

// NOT_KNOWN for null, other values, and what is no size.
static uint64_t bytes_of(const char *text, const char *end, const char *key) {
    const char *value = value_of(text, end, key);
    if (value == NULL || *value < '0' || *value > '9') return NOT_KNOWN;
    char *rest = NULL;
    const uint64_t bytes = strtoull(value, &rest, 10);
    return bytes <= MOST_BYTES && *rest != '.' && *rest != 'e' && *rest != 'E' ? bytes : NOT_KNOWN;
}

// The text of a string as printable ASCII, anything else as '?'; "" where there is none. Cut to fit.
static void string_of(const char *text, const char *end, const char *key, char *string, size_t capacity) {
    const char *at = value_of(text, end, key);
    size_t length = 0;
    for (at = at != NULL && *at == '"' ? at + 1 : ""; *at != '\0' && *at != '"' && length + 1 < capacity; at++) {
        char byte = *at;
        if (byte == '\\') {
            if (*++at == '\0') break;
            byte = *at == '"' || *at == '\\' || *at == '/' ? *at : '?';
            const bool is_number = *at == 'u'; // four digits follow
            for (int i = 0; is_number && i < 4 && at[1] != '\0' && at[1] != '"'; i++) at++;
        }
        string[length++] = byte >= 0x20 && byte <= 0x7e ? byte : '?';
    }
    string[length] = '\0';
}

// --- which of them --------------------------------------------------------------------------------------------------------------

// Of this device, and of this event: by its time, or, without one, of the last event.
static bool belongs(const char *text, const char *end, uint32_t device, const struct vram_report_oom *oom, bool is_last) {
    if (*text != '{' || bytes_of(text, end, "device") != device) return false;
    const char *time = value_of(text, end, "time_us");
    return time == NULL ? is_last : oom->has_time && strtoll(time, NULL, 10) == (long long)oom->time_us;
}

static const char *find_text(const struct vr_view *view, const struct vram_report_oom *oom, bool is_last) {
    for (unsigned slot = 0; slot < MOST_SLOTS; slot++) {
        char key[32];
        (void)snprintf(key, sizeof key, PREFIX "%u", slot);
        const char *text = vr_model_setting(view->model, key);
        if (text != NULL && belongs(text, text + strlen(text), view->device, oom, is_last)) return text;
    }
    return NULL;
}

static enum vram_status read_processes(const char *text, const char *end, struct vr_arena *arena, struct vram_report_accounts *made) {
    void *room;
    VR_TRY(vr_arena_array(arena, MOST_LISTED, sizeof(struct vram_report_process), &room));
    struct vram_report_process *processes = room;
    static const char mark[] = "\"pid\"";
    const char *at = strstr(text, mark);
    while (at != NULL && made->process_count < MOST_LISTED) {
        const char *next = strstr(at + sizeof mark - 1, mark), *until = next == NULL ? end : next;
        struct vram_report_process *process = &processes[made->process_count++];
        char name[NAME_BYTES];
        string_of(at, until, "name", name, sizeof name);
        process->id = bytes_of(at, until, "pid");
        process->bytes = bytes_of(at, until, "bytes");
        VR_TRY(vr_arena_copy(arena, name, strlen(name), &process->name));
        at = next;
    }
    const uint64_t left_out = bytes_of(text, end, "left_out");
    made->left_out = left_out == NOT_KNOWN ? 0 : left_out;
    made->processes = processes;
    return VRAM_OK;
}

// --- sharing out ------------------------------------------------------------------------------------------------------------------

static uint64_t take(uint64_t *rest, uint64_t wanted) {
    const uint64_t taken = wanted < *rest ? wanted : *rest;
    *rest -= taken;
    return taken;
}

// self_bytes: all that NVML says this process held; NOT_KNOWN.
static void share_out(const struct vram_report_oom *oom, uint64_t held, uint64_t self_bytes, uint64_t context_bytes, uint64_t module_bytes,
                      struct vram_report_accounts *made) {
    uint64_t rest = oom->outside_bytes, listed = 0;
    made->has_context = context_bytes != NOT_KNOWN;
    made->has_modules = module_bytes != NOT_KNOWN;
    made->has_self = self_bytes != NOT_KNOWN;
    made->context_bytes = made->has_context ? take(&rest, context_bytes) : 0;
    made->module_bytes = made->has_modules ? take(&rest, module_bytes) : 0;
    const uint64_t own_bytes = held + made->context_bytes + made->module_bytes;
    made->driver_bytes = made->has_self && self_bytes > own_bytes ? take(&rest, self_bytes - own_bytes) : 0;
    for (size_t i = 0; i < made->process_count; i++) listed += made->processes[i].bytes == NOT_KNOWN ? 0 : made->processes[i].bytes;
    // Where nobody knows which of them is this process, what is known to be its own is taken off.
    if (made->has_processes && !made->apart) listed -= listed < own_bytes ? listed : own_bytes;
    made->other_bytes = take(&rest, listed);
    made->unknown_bytes = rest;
}

enum vram_status vr_accounts_find(const struct vr_view *view, const struct vram_report_oom *oom, bool is_last, bool driver_level,
                                  struct vr_arena *arena, const struct vram_report_accounts **accounts) {
    const char *text = find_text(view, oom, is_last);
    *accounts = NULL;
    if (text == NULL) return VRAM_OK;
    void *room;
    char why[256];
    VR_TRY(vr_arena_array(arena, 1, sizeof(struct vram_report_accounts), &room));
    struct vram_report_accounts *made = room;
    const char *end = text + strlen(text);
    string_of(text, end, "why", why, sizeof why);
    VR_TRY(vr_arena_copy(arena, why, strlen(why), &made->why));
    const char *processes = value_of(text, end, "processes");
    made->has_processes = processes != NULL;
    made->apart = is_true(text, end, "has_self");
    made->at_start_bytes = bytes_of(text, end, "at_start_bytes");
    if (processes != NULL) VR_TRY(read_processes(text, end, arena, made));
    // This process holds memory of the device: a list without anybody tells nothing.
    if (processes != NULL && made->process_count == 0 && made->left_out == 0 && !made->apart) {
        made->has_processes = false;
        made->why = "NVML lists no process of the device, not even this one, as in many containers";
    }
    share_out(oom, vr_oom_held(oom, driver_level), bytes_of(text, end, "self_bytes"), bytes_of(text, end, "context_bytes"),
              bytes_of(text, end, "module_bytes"), made);
    *accounts = made;
    return VRAM_OK;
}
