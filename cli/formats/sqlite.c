// Writes a recording as an SQLite database. SQLite writes only to named files, so the database is built in the output's folder and copied.
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../formats.h"
#include "vram/recording.h"

// Documented in docs/reference/formats/sqlite.md. Addresses and streams are SQLite's signed 64-bit numbers.
static const char schema[] =
    "PRAGMA page_size=8192; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=-16384;"
    "BEGIN;"
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE settings(key TEXT, value TEXT);"
    "CREATE TABLE frames(frame INTEGER PRIMARY KEY, name TEXT, filename TEXT, line INTEGER);"
    "CREATE TABLE stacks(stack INTEGER PRIMARY KEY, depth INTEGER, site_frame INTEGER REFERENCES frames);"
    "CREATE TABLE stack_frames(stack INTEGER REFERENCES stacks, depth INTEGER, frame INTEGER REFERENCES frames, PRIMARY KEY(stack, depth))"
    " WITHOUT ROWID;"
    "CREATE TABLE events(id INTEGER PRIMARY KEY, device INTEGER, event INTEGER, time_us INTEGER, action TEXT, address INTEGER,"
    " size_bytes INTEGER, stream INTEGER, pool_first INTEGER, pool_second INTEGER, thread INTEGER, stack INTEGER REFERENCES stacks"
#define TEXT_COLUMN(member, column) ", " column " TEXT"
    VRAM_EVENT_TEXTS(
        TEXT_COLUMN) ");"
                     "CREATE TABLE segments(segment INTEGER PRIMARY KEY, device INTEGER, address INTEGER, size_bytes INTEGER, "
                     "allocated_bytes INTEGER,"
                     " active_bytes INTEGER, requested_bytes INTEGER, stream INTEGER, pool_first INTEGER, pool_second INTEGER, kind TEXT,"
                     " expandable INTEGER, stack INTEGER REFERENCES stacks);"
                     "CREATE TABLE blocks(block INTEGER PRIMARY KEY, segment INTEGER REFERENCES segments, address INTEGER, size_bytes "
                     "INTEGER,"
                     " requested_bytes INTEGER, state TEXT, stack INTEGER REFERENCES stacks);"
                     "CREATE TABLE annotations(device INTEGER, time_us INTEGER, stage TEXT, name TEXT);";
static const char ending[] =
    "CREATE VIEW sites AS SELECT stack, site_frame, name, filename, line FROM stacks LEFT JOIN frames ON site_frame = frame;"
    "COMMIT;";

struct database {
    sqlite3 *handle;
    sqlite3_stmt *insert; // for the table being filled
    bool good;            // false: SQLite has the error
};

static bool step_result(struct database *db, int result) {
    db->good = db->good && (result == SQLITE_OK || result == SQLITE_DONE);
    return db->good;
}

static bool run_sql(struct database *db, const char *sql) {
    return db->good && step_result(db, sqlite3_exec(db->handle, sql, NULL, NULL, NULL));
}

static void end_table(struct database *db) {
    sqlite3_finalize(db->insert);
    db->insert = NULL;
}

static bool begin_table(struct database *db, const char *sql) {
    end_table(db);
    return db->good && step_result(db, sqlite3_prepare_v2(db->handle, sql, -1, &db->insert, NULL));
}

// Adds a row. Each letter of `kinds` is a column: i: uint64_t; o: an int that is 0 for NULL, then uint64_t; s: a string ("" becomes NULL).
static bool add_row(struct database *db, const char *kinds, ...) {
    va_list values;
    int column = 1;
    va_start(values, kinds);
    (void)sqlite3_clear_bindings(db->insert);
    for (const char *kind = kinds; *kind != '\0' && db->good; kind++, column++) {
        if (*kind == 's') {
            const char *text = va_arg(values, const char *);
            (void)step_result(db, text[0] == '\0' ? sqlite3_bind_null(db->insert, column)
                                                  : sqlite3_bind_text(db->insert, column, text, -1, SQLITE_STATIC));
        } else {
            if (*kind == 'o' && va_arg(values, int) == 0) {
                (void)va_arg(values, uint64_t);
                continue;
            }
            (void)step_result(db, sqlite3_bind_int64(db->insert, column, (sqlite3_int64)va_arg(values, uint64_t)));
        }
    }
    va_end(values);
    if (!db->good) return false;
    (void)step_result(db, sqlite3_step(db->insert));
    return step_result(db, sqlite3_reset(db->insert));
}
#define N(value) ((uint64_t)(value))

static void put_names(struct database *db, const struct vram_recording *recording, const char *input) {
    const char *key, *value;
    static const char *const endings[] = {"whole", "open", "cut"};
    (void)begin_table(db, "INSERT INTO meta VALUES(?,?)");
    (void)add_row(db, "ss", "format", "vram 1");
    (void)add_row(db, "ss", "input", input);
    (void)add_row(db, "ss", "ending", endings[vram_get_recording_ending(recording)]);
    (void)add_row(db, "si", "devices", N(vram_recording_device_count(recording)));
    (void)begin_table(db, "INSERT INTO settings VALUES(?,?)");
    for (uint64_t i = 0; vram_recording_setting_at(recording, i, &key, &value) && add_row(db, "ss", key, value);) i++;
}

// Writes the stacks. `sites` has each stack's representative frame.
static void put_stacks(struct database *db, const struct vram_recording *recording, const uint32_t *sites) {
    struct vram_frame frame;
    const uint32_t stacks = vram_recording_stack_count(recording);
    (void)begin_table(db, "INSERT INTO frames VALUES(?,?,?,?)");
    for (uint32_t i = 0; vram_recording_frame(recording, i, &frame); i++) {
        if (!add_row(db, "issi", N(i), frame.name, frame.filename, N(frame.line))) return;
    }
    (void)begin_table(db, "INSERT INTO stacks VALUES(?,?,?)");
    for (uint32_t i = 0; i < stacks && db->good; i++) {
        uint64_t depth;
        (void)vram_recording_stack(recording, i, &depth);
        (void)add_row(db, "iio", N(i), depth, (int)(sites[i] != VRAM_NO_FRAME), N(sites[i]));
    }
    (void)begin_table(db, "INSERT INTO stack_frames VALUES(?,?,?)");
    for (uint32_t i = 0; i < stacks; i++) {
        uint64_t depth;
        const uint32_t *frames = vram_recording_stack(recording, i, &depth);
        for (uint64_t f = 0; f < depth && add_row(db, "iii", N(i), f, N(frames[f]));) f++;
    }
}

#define TEXT_PLACE(member, column) ",?"
#define TEXT_KIND(member, column)  "s"
#define TEXT_VALUE(member, column) , event.member
static void put_events(struct database *db, const struct vram_recording *recording) {
    struct vram_recorded_event event;
    uint64_t id = 0;
    const uint32_t devices = vram_recording_device_count(recording);
    (void)begin_table(db, "INSERT INTO events VALUES(?,?,?,?,?,?,?,?,?,?,?,?" VRAM_EVENT_TEXTS(TEXT_PLACE) ")");
    for (uint32_t device = 0; device < devices && db->good; device++) {
        for (uint64_t i = 0; db->good && vram_recording_event(recording, device, i, &event); i++) {
            (void)add_row(db, "iiiosiiiiiii" VRAM_EVENT_TEXTS(TEXT_KIND), id++, N(device), i, (int)event.has_time, N(event.time_us),
                          event.action, event.address, event.size_bytes, event.stream, event.pool.first, event.pool.second, N(event.thread),
                          N(event.stack) VRAM_EVENT_TEXTS(TEXT_VALUE));
        }
    }
}

static void put_state(struct database *db, const struct vram_recording *recording) {
    struct vram_recorded_segment segment;
    struct vram_recorded_block block;
    struct vram_recorded_annotation mark;
    (void)begin_table(db, "INSERT INTO segments VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)");
    for (uint64_t i = 0; db->good && vram_recording_segment(recording, i, &segment); i++) {
        (void)add_row(db, "iiiiiiiiiisii", i, N(segment.device), segment.address, segment.size_bytes, segment.allocated_bytes,
                      segment.active_bytes, segment.requested_bytes, segment.stream, segment.pool.first, segment.pool.second, segment.kind,
                      N(segment.expandable), N(segment.stack));
    }
    (void)begin_table(db, "INSERT INTO blocks VALUES(?,?,?,?,?,?,?)");
    for (uint64_t s = 0; db->good && vram_recording_segment(recording, s, &segment); s++) {
        for (uint64_t i = segment.first_block; i < segment.first_block + segment.block_count && db->good; i++) {
            if (!vram_recording_block(recording, i, &block)) break;
            (void)add_row(db, "iiiiisi", i, s, block.address, block.size_bytes, block.requested_bytes, block.state, N(block.stack));
        }
    }
    (void)begin_table(db, "INSERT INTO annotations VALUES(?,?,?,?)");
    for (uint64_t i = 0; db->good && vram_recording_annotation(recording, i, &mark); i++) {
        (void)add_row(db, "iiss", N(mark.device), N(mark.time_us), mark.stage, mark.name);
    }
}

static enum vram_status fail_database(struct vram_error *error, enum vram_status status, const char *message) {
    error->status = status;
    error->offset = VRAM_NO_OFFSET;
    (void)snprintf(error->message, sizeof error->message, "%s", message);
    return status;
}

static enum vram_status fill_database(const struct vram_recording *recording, const uint32_t *sites, const char *path, const char *input,
                                      struct vram_error *error) {
    struct database db = {.good = true};
    enum vram_status status = VRAM_OK;
    char message[256];
    (void)step_result(&db, sqlite3_open(path, &db.handle));
    if (run_sql(&db, schema)) {
        put_names(&db, recording, input);
        put_stacks(&db, recording, sites);
        put_events(&db, recording);
        put_state(&db, recording);
        end_table(&db);
        (void)run_sql(&db, ending);
    }
    if (!db.good) {
        (void)snprintf(message, sizeof message, "cannot create the database: %s", sqlite3_errmsg(db.handle));
        status = fail_database(error, VRAM_NO_HOST_MEMORY, message);
    }
    end_table(&db);
    (void)sqlite3_close(db.handle);
    return status;
}

static enum vram_status copy_file(FILE *file, vram_write write, void *user, struct vram_error *error) {
    static char bytes[1 << 16];
    size_t got;
    while ((got = fread(bytes, 1, sizeof bytes, file)) != 0) {
        if (!write(user, bytes, got)) return fail_database(error, VRAM_IO, "cannot write the output");
    }
    return ferror(file) ? fail_database(error, VRAM_NO_HOST_MEMORY, "cannot read the database back") : VRAM_OK;
}

// Builds "FOLDER/.vram-XXXXXX" in the output's folder, or in TMPDIR. Returns NULL if memory runs out.
static char *temporary_path(const char *output) {
    static const char name[] = ".vram-XXXXXX";
    const char *folder = strcmp(output, "-") == 0 ? getenv("TMPDIR") : output, *slash = strrchr(output, '/');
    size_t length = folder == NULL ? 0 : folder != output ? strlen(folder) : slash == NULL ? 0 : (size_t)(slash - output) + 1;
    if (folder == NULL) folder = "/tmp", length = 4;
    char *path = malloc(length + sizeof name + 1);
    if (path == NULL) return NULL;
    (void)snprintf(path, length + sizeof name + 1, "%.*s%s%s", (int)length, folder, length != 0 && folder[length - 1] != '/' ? "/" : "",
                   name);
    return path;
}

enum vram_status convert_sqlite(const struct vram_recording *recording, const struct convert_options *options, vram_write write, void *user,
                                struct vram_error *error) {
    char *path = temporary_path(options->path);
    const int descriptor = path == NULL ? -1 : mkstemp(path);
    if (descriptor < 0) {
        free(path);
        return fail_database(error, VRAM_NO_HOST_MEMORY, "cannot create a file for the database next to the output");
    }
    FILE *file = fdopen(descriptor, "rb");
    uint32_t *sites = calloc((size_t)vram_recording_stack_count(recording) + 1, sizeof *sites);
    enum vram_status status = sites == NULL ? VRAM_NO_HOST_MEMORY : vram_recording_sites(recording, sites);
    status = status != VRAM_OK ? fail_database(error, status, "not enough host memory")
                               : fill_database(recording, sites, path, options->name, error);
    free(sites);
    if (status == VRAM_OK)
        status = file == NULL ? fail_database(error, VRAM_NO_HOST_MEMORY, "not enough host memory") : copy_file(file, write, user, error);
    if (file != NULL) (void)fclose(file);
    (void)unlink(path);
    free(path);
    return status;
}
