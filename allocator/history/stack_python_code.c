#include "history/stack_python_code.h"

#include <stdatomic.h>

#include "base/hash.h"
#include "os/once.h"

// Maps keys to ids: open addressing, at most half full. A slot's id is written before its key. An outgrown table stays for readers that
// still use it; together these are no larger than the current one. Readers take no lock, so base/hash.h's map would not do.
struct keys {
    uint64_t secret;
    size_t slots; // a power of two
    struct keys *outgrown;
    struct {
        _Atomic uint64_t key;
        _Atomic uint32_t id;
    } slot[];
};

enum { FIRST_SLOTS = 1024, CHUNK = 1024, CHUNKS = 4096 };

static _Atomic(struct keys *) keys;
static _Atomic(struct vr_python_code *) chunks[CHUNKS]; // code `id` is chunks[id / CHUNK][id % CHUNK]
static _Atomic uint32_t code_count;
static size_t key_count; // the rest is guarded by the lock
static struct vr_hash_index by_contents;
static _Atomic uint64_t bytes_held;

static struct vr_once prepared;
static struct vr_mutex mutex;

static void lock_codes(void);
static void unlock_codes(void) { vr_mutex_unlock(&mutex); }

static void prepare_codes(void) {
    vr_mutex_init(&mutex);
    vr_hash_index_init(&by_contents);
    vr_os_at_fork(lock_codes, unlock_codes, unlock_codes);
}

static void lock_codes(void) {
    vr_once(&prepared, prepare_codes);
    vr_mutex_lock(&mutex);
}

VR_INLINE size_t home_of(const struct keys *table, uint64_t key) { return (size_t)vr_hash_step(table->secret, key) & (table->slots - 1); }

uint32_t vr_codes_find(uint64_t key) {
    struct keys *table = atomic_load_explicit(&keys, memory_order_acquire);
    if (table == NULL) return UINT32_MAX;
    for (size_t at = home_of(table, key);; at = (at + 1) & (table->slots - 1)) {
        const uint64_t found = atomic_load_explicit(&table->slot[at].key, memory_order_acquire);
        if (found == key) return atomic_load_explicit(&table->slot[at].id, memory_order_relaxed);
        if (found == 0) return UINT32_MAX;
    }
}

static void put_key(struct keys *table, uint64_t key, uint32_t id) {
    size_t at = home_of(table, key);
    while (atomic_load_explicit(&table->slot[at].key, memory_order_relaxed) != 0) at = (at + 1) & (table->slots - 1);
    atomic_store_explicit(&table->slot[at].id, id, memory_order_relaxed);
    atomic_store_explicit(&table->slot[at].key, key, memory_order_release);
}

static bool add_key(uint64_t key, uint32_t id) {
    struct keys *table = atomic_load_explicit(&keys, memory_order_relaxed);
    if (table == NULL || key_count * 2 >= table->slots) {
        const size_t slots = table == NULL ? FIRST_SLOTS : table->slots * 2;
        struct keys *larger = calloc(1, sizeof *larger + slots * sizeof larger->slot[0]);
        if (larger == NULL) return false;
        larger->secret = vr_hash_secret(larger);
        larger->slots = slots;
        larger->outgrown = table;
        for (size_t i = 0; table != NULL && i < table->slots; i++) {
            const uint64_t old = atomic_load_explicit(&table->slot[i].key, memory_order_relaxed);
            if (old != 0) put_key(larger, old, atomic_load_explicit(&table->slot[i].id, memory_order_relaxed));
        }
        atomic_fetch_add_explicit(&bytes_held, slots * sizeof larger->slot[0], memory_order_relaxed);
        atomic_store_explicit(&keys, larger, memory_order_release);
        table = larger;
    }
    put_key(table, key, id);
    key_count++;
    return true;
}

static bool equal_codes(const struct vr_python_code *a, const struct vr_python_code *b) {
    return a->hash == b->hash && a->line_bytes == b->line_bytes && a->first_line == b->first_line && a->form == b->form &&
           strcmp(a->name, b->name) == 0 && strcmp(a->filename, b->filename) == 0 &&
           (a->line_bytes == 0 || memcmp(a->lines, b->lines, a->line_bytes) == 0);
}

static uint64_t hash_code(uint64_t secret, const struct vr_python_code *code) {
    uint64_t hash = vr_hash_step(secret, (uint64_t)code->first_line);
    hash = vr_hash_bytes(hash, code->name, strlen(code->name));
    hash = vr_hash_bytes(hash, code->filename, strlen(code->filename));
    return vr_hash_bytes(hash, code->lines, code->line_bytes);
}

const struct vr_python_code *vr_codes_get(uint32_t id) {
    if (id >= atomic_load_explicit(&code_count, memory_order_acquire)) return NULL;
    return &atomic_load_explicit(&chunks[id / CHUNK], memory_order_relaxed)[id % CHUNK];
}

// Returns the id of equal contents, or UINT32_MAX.
static uint32_t find_contents(const struct vr_python_code *code) {
    uint32_t id = UINT32_MAX;
    bool found;
    VR_HASH_INDEX_FIND(&by_contents, code->hash, id, equal_codes(vr_codes_get(id), code), found);
    return found ? id : UINT32_MAX;
}

static bool copy_code(struct vr_python_code *copy, const struct vr_python_code *code) {
    const size_t name_bytes = strlen(code->name) + 1, file_bytes = strlen(code->filename) + 1;
    char *text = malloc(name_bytes + file_bytes + code->line_bytes);
    if (text == NULL) return false;
    *copy = *code;
    copy->name = memcpy(text, code->name, name_bytes);
    copy->filename = memcpy(text + name_bytes, code->filename, file_bytes);
    if (code->line_bytes != 0) copy->lines = memcpy(text + name_bytes + file_bytes, code->lines, code->line_bytes);
    atomic_fetch_add_explicit(&bytes_held, name_bytes + file_bytes + code->line_bytes, memory_order_relaxed);
    return true;
}

static uint32_t add_contents(const struct vr_python_code *code) {
    const uint32_t id = atomic_load_explicit(&code_count, memory_order_relaxed);
    const uint32_t known = find_contents(code);
    if (known != UINT32_MAX) return known;
    const size_t growth = vr_hash_index_growth_bytes(&by_contents);
    if (id / CHUNK >= CHUNKS || vr_hash_index_reserve(&by_contents) != VRAM_OK) return UINT32_MAX;
    atomic_fetch_add_explicit(&bytes_held, growth, memory_order_relaxed);
    struct vr_python_code *chunk = atomic_load_explicit(&chunks[id / CHUNK], memory_order_relaxed);
    if (chunk == NULL) {
        chunk = calloc(CHUNK, sizeof chunk[0]);
        if (chunk == NULL) return UINT32_MAX;
        atomic_fetch_add_explicit(&bytes_held, CHUNK * sizeof chunk[0], memory_order_relaxed);
        atomic_store_explicit(&chunks[id / CHUNK], chunk, memory_order_relaxed);
    }
    if (!copy_code(&chunk[id % CHUNK], code)) return UINT32_MAX;
    atomic_store_explicit(&code_count, id + 1, memory_order_release);
    vr_hash_index_add(&by_contents, code->hash, id);
    return id;
}

uint32_t vr_codes_add(uint64_t key, const struct vr_python_code *code) {
    assert(key != 0); // 0 marks a free slot
    struct vr_python_code hashed = *code;
    lock_codes();
    hashed.hash = hash_code(by_contents.secret, code);
    uint32_t id = vr_codes_find(key);
    if (id == UINT32_MAX) {
        id = add_contents(&hashed);
        if (id != UINT32_MAX && !add_key(key, id)) id = UINT32_MAX;
    }
    unlock_codes();
    return id;
}

uint64_t vr_codes_bytes(void) { return atomic_load_explicit(&bytes_held, memory_order_relaxed); }

// --- lines ---------------------------------------------------------------------------------------------------------------------

// Pairs of bytes: number of code bytes, line increment (signed).
static int64_t line_of_lnotab(const struct vr_python_code *code, uint64_t offset) {
    int64_t line = code->first_line;
    uint64_t address = 0;
    for (size_t i = 0; i + 1 < code->line_bytes; i += 2) {
        address += code->lines[i];
        if (address > offset) break;
        line += (signed char)code->lines[i + 1];
    }
    return line;
}

// Pairs as in line_of_lnotab(), but each line increment applies to its own range; -128 means that the range has no line.
static int64_t line_of_pep626(const struct vr_python_code *code, uint64_t offset) {
    int64_t line = code->first_line;
    uint64_t address = 0;
    for (size_t i = 0; i + 1 < code->line_bytes; i += 2) {
        const int delta = (signed char)code->lines[i + 1];
        if (delta != -128) line += delta;
        address += code->lines[i];
        if (offset < address) return delta == -128 ? 0 : line;
    }
    return 0;
}

static uint64_t take_varint(const struct vr_python_code *code, size_t *at) {
    uint64_t value = 0;
    unsigned byte = 64;
    for (unsigned shift = 0; (byte & 64) != 0 && *at < code->line_bytes; shift += 6) {
        byte = code->lines[(*at)++];
        if (shift < 58) value |= (uint64_t)(byte & 63) << shift;
    }
    return value;
}

// Entries begin with a byte whose bit 7 is set: four bits of form, three of length in code units. Columns are skipped.
static int64_t line_of_pep657(const struct vr_python_code *code, uint64_t offset) {
    int64_t line = code->first_line;
    uint64_t address = 0;
    for (size_t at = 0; at < code->line_bytes;) {
        const unsigned first = code->lines[at++], form = first >> 3 & 15;
        if (form == 13 || form == 14) {
            const uint64_t number = take_varint(code, &at);
            line += (number & 1) != 0 ? -(int64_t)(number >> 1) : (int64_t)(number >> 1);
        } else if (form >= 10 && form <= 12) {
            line += form - 10;
        }
        address += ((first & 7) + 1) * 2;
        if (offset < address) return form == 15 ? 0 : line;
        while (at < code->line_bytes && (code->lines[at] & 128) == 0) at++;
    }
    return 0;
}

int64_t vr_python_line(const struct vr_python_code *code, uint64_t offset) {
    switch (code->form) {
    case VR_PYTHON_LNOTAB: return line_of_lnotab(code, offset);
    case VR_PYTHON_PEP626: return line_of_pep626(code, offset);
    default: return line_of_pep657(code, offset);
    }
}
