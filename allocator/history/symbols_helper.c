// symbols_helper.c: reads lines and inlined functions in a helper process. libdw and the loader end their process when memory runs out, and
// crafted files may crash them. That must happen only to a copy of this process, whose results up to then are used.
#include "history/symbols.h"
#include "os/os.h"

// The helper writes, for every frame, this struct and its texts; an address's frames are consecutive.
struct message {
    uint32_t index;          // of the address, or a constant below
    uint32_t name;           // bytes
    uint32_t filename;       // bytes, or NO_TEXT
    enum vram_status status; // with FINISHED
    int64_t line;
};
enum { NO_TEXT = UINT32_MAX, FINISHED = UINT32_MAX, WORKING = UINT32_MAX - 1 };

// A thread may have held the allocator's or the loader's lock when the copy was made; the helper then never reports that it works.
enum { STARTS = 3, START_SECONDS = 2, SILENT_SECONDS = 60, TEXT_MAX_BYTES = 1 << 24 };
#define TICK_NS 1000000000u

// --- in the helper ---------------------------------------------------------------------------------------------------------------

struct sending {
    int file, out;
    const uint64_t *offsets;
    size_t count;
    const char *const *names;
    bool *found;
    uint64_t sent_ns;
    size_t filled;
    char bytes[65536];
};

static bool flush_sending(struct sending *sending) {
    const size_t bytes = sending->filled;
    sending->filled = 0;
    sending->sent_ns = vr_os_monotonic_ns();
    return vr_os_helper_write(sending->out, sending->bytes, bytes);
}

static bool put_bytes(struct sending *sending, const void *bytes, size_t size_bytes) {
    if (size_bytes > sizeof sending->bytes - sending->filled && !flush_sending(sending)) return false;
    if (size_bytes > sizeof sending->bytes) return vr_os_helper_write(sending->out, bytes, size_bytes);
    if (size_bytes != 0) memcpy(sending->bytes + sending->filled, bytes, size_bytes);
    sending->filled += size_bytes;
    return true;
}

static enum vram_status send_frame(void *context, size_t index, const char *name, const char *filename, int64_t line) {
    struct sending *sending = context;
    const size_t name_bytes = strlen(name), filename_bytes = filename == NULL ? 0 : strlen(filename);
    if (name_bytes > TEXT_MAX_BYTES || filename_bytes > TEXT_MAX_BYTES) return VRAM_OK;
    const struct message message = {.index = (uint32_t)index,
                                    .name = (uint32_t)name_bytes,
                                    .filename = filename == NULL ? NO_TEXT : (uint32_t)filename_bytes,
                                    .line = line};
    const bool sent = put_bytes(sending, &message, sizeof message) && put_bytes(sending, name, name_bytes) &&
                      put_bytes(sending, filename, filename_bytes);
    return sent ? VRAM_OK : VRAM_IO;
}

static void send_message(struct sending *sending, uint32_t what, enum vram_status status) {
    const struct message message = {.index = what, .status = status, .filename = NO_TEXT};
    if (!put_bytes(sending, &message, sizeof message) || !flush_sending(sending)) vr_os_helper_give_up();
}

static void send_working(void *context) {
    struct sending *sending = context;
    if (vr_os_monotonic_ns() - sending->sent_ns > TICK_NS) send_message(sending, WORKING, VRAM_OK);
}

static void helper_work(void *context, int out) {
    struct sending *sending = context;
    sending->out = out;
    free(malloc(sizeof sending->bytes)); // hangs here if it would hang later
    vr_dwarf_wake();
    send_message(sending, WORKING, VRAM_OK);
    const struct vr_symbol_sink sink = {.frame = send_frame, .working = send_working, .context = sending};
    send_message(
        sending, FINISHED,
        vr_dwarf_find(sending->file, sending->offsets, sending->count, sending->names, sending->found, vr_os_helper_give_up, &sink));
}

// --- in this process -------------------------------------------------------------------------------------------------------------

struct receiving {
    const struct vr_os_helper *helper;
    const struct sending *sending;
    const struct vr_symbol_sink *sink;
    char *bytes;
    size_t bytes_capacity;
    size_t count;     // bytes received
    size_t first, at; // offsets of the first message of an incomplete address, and of the first unread message
    uint32_t index;   // of the incomplete address
    bool started, finished;
    enum vram_status status; // from the helper
};

static size_t length_of(const struct message *message) {
    return sizeof *message + message->name + (message->filename == NO_TEXT ? 0 : message->filename);
}

// Emits the frames of the address that is now complete.
static enum vram_status emit_address(struct receiving *receiving) {
    struct message message;
    enum vram_status status = VRAM_OK;
    for (size_t at = receiving->first; status == VRAM_OK && at < receiving->at; at += length_of(&message)) {
        memcpy(&message, receiving->bytes + at, sizeof message);
        if (message.index == WORKING) continue;
        // Make NUL-terminated strings; the sink copies both.
        const char *texts = receiving->bytes + at + sizeof message;
        char *name = malloc((size_t)message.name + 1);
        char *filename = message.filename == NO_TEXT ? NULL : malloc((size_t)message.filename + 1);
        if (name == NULL || (filename == NULL && message.filename != NO_TEXT)) status = VRAM_NO_HOST_MEMORY;
        if (status == VRAM_OK) {
            memcpy(name, texts, message.name);
            name[message.name] = '\0';
            if (filename != NULL) {
                memcpy(filename, texts + message.name, message.filename);
                filename[message.filename] = '\0';
            }
            status = vr_symbol_emit(receiving->sink, message.index, name, filename, message.line);
            receiving->sending->found[message.index] = true;
        }
        free(name);
        free(filename);
    }
    receiving->first = receiving->at;
    return status;
}

// Reads the received messages. BAD_INPUT for data that no working helper writes.
static enum vram_status read_messages(struct receiving *receiving) {
    struct message message;
    while (!receiving->finished && receiving->count - receiving->at >= sizeof message) {
        memcpy(&message, receiving->bytes + receiving->at, sizeof message);
        const bool address = message.index < receiving->sending->count;
        if (!address && message.index != WORKING && message.index != FINISHED) return VRAM_BAD_INPUT;
        if (message.name > TEXT_MAX_BYTES || (message.filename != NO_TEXT && message.filename > TEXT_MAX_BYTES)) return VRAM_BAD_INPUT;
        if (receiving->count - receiving->at < length_of(&message)) break;
        if ((address && message.index != receiving->index) || message.index == FINISHED) {
            VR_TRY(emit_address(receiving));
            receiving->index = message.index;
        }
        receiving->started = true;
        receiving->finished = message.index == FINISHED;
        if (receiving->finished) receiving->status = message.status;
        receiving->at += length_of(&message);
    }
    memmove(receiving->bytes, receiving->bytes + receiving->first, receiving->count - receiving->first);
    receiving->count -= receiving->first;
    receiving->at -= receiving->first;
    receiving->first = 0;
    return VRAM_OK;
}

static enum vram_status receive_answer(struct receiving *receiving) {
    enum { PIECE = 65536 };
    size_t got = 1;
    while (!receiving->finished && got != 0) {
        VR_TRY(VR_GROW(receiving, bytes, receiving->count + PIECE));
        const unsigned seconds = receiving->started ? SILENT_SECONDS : START_SECONDS;
        if (vr_os_helper_read(receiving->helper, receiving->bytes + receiving->count, PIECE, seconds, &got) != VRAM_OK) return VRAM_OK;
        receiving->count += got;
        VR_TRY(read_messages(receiving));
    }
    return VRAM_OK;
}

// Asks one helper. *started: it sent something.
static enum vram_status ask_helper(struct sending *sending, const struct vr_symbol_sink *sink, bool *started) {
    struct vr_os_helper helper;
    struct receiving receiving = {.helper = &helper, .sending = sending, .sink = sink, .index = FINISHED, .status = VRAM_UNSUPPORTED};
    VR_TRY(vr_os_helper_start(helper_work, sending, &helper));
    enum vram_status status = receive_answer(&receiving);
    vr_os_helper_end(&helper);
    free(receiving.bytes);
    *started = receiving.started;
    // If the helper died, its partial result is kept.
    return status == VRAM_BAD_INPUT ? VRAM_OK : status != VRAM_OK ? status : receiving.finished ? receiving.status : VRAM_OK;
}

enum vram_status vr_lines_find(int file, const uint64_t *offsets, size_t count, const char *const *names, bool *found,
                               const struct vr_symbol_sink *sink) {
    if (!vr_dwarf_load() || count >= WORKING) return VRAM_UNSUPPORTED;
    struct sending *sending = malloc(sizeof *sending);
    if (sending == NULL) return VRAM_NO_HOST_MEMORY;
    *sending = (struct sending){.file = file, .offsets = offsets, .count = count, .names = names, .found = found};
    enum vram_status status = VRAM_OK;
    bool started = false;
    for (int i = 0; status == VRAM_OK && !started && i < STARTS; i++) status = ask_helper(sending, sink, &started);
    free(sending);
    return status == VRAM_OK && !started ? VRAM_UNSUPPORTED : status;
}
