// Reads the files of simulator/standins/common/check_lines.h.
#define _GNU_SOURCE // versionsort()
#include "check_findings.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../simulator/check/check.h"
#include "../simulator/standins/common/check_lines.h"
#include "args.h"
#include "ui.h"

const char *const check_roles[CHECK_ROLES] = {"earlier", "earlier_launch", "later", "later_launch", "allocated", "freed"};

// ---- Memory.

static void release_use(struct check_use *use) {
    for (size_t i = 0; i < use->frame_count; i++) {
        free(use->frames[i].name);
        free(use->frames[i].file);
    }
    free(use->frames);
    free(use->work);
}

static void release_finding(struct check_finding *finding) {
    for (size_t i = 0; i < CHECK_ROLES; i++) release_use(&finding->uses[i]);
}

void check_findings_release(struct check_findings *findings) {
    for (size_t i = 0; i < findings->count; i++) release_finding(&findings->items[i]);
    for (size_t i = 0; i < findings->numbered_count; i++) {
        release_use(&findings->numbered[i].use);
        release_use(&findings->numbered[i].launch);
    }
    free(findings->numbered);
    for (size_t i = 0; i < findings->unseen_count; i++) free(findings->unseen[i]);
    free(findings->unseen);
    free(findings->items);
    *findings = (struct check_findings){0};
}

static void drop_finding(struct check_findings *findings, size_t at) {
    release_finding(&findings->items[at]);
    findings->count--;
    memmove(&findings->items[at], &findings->items[at + 1], (findings->count - at) * sizeof *findings->items);
}

// Makes room for one more item of an array.
static bool make_room(void **items, size_t *capacity, size_t count, size_t item_bytes) {
    if (count < *capacity) return true;
    const size_t wider = *capacity == 0 ? 16 : 2 * *capacity;
    void *moved = realloc(*items, wider * item_bytes);
    if (moved == NULL) return false;
    *items = moved;
    *capacity = wider;
    return true;
}

// ---- Lines.

// Cuts the next field off the line. Returns "" after the last one.
static char *next_field(char **line) {
    char *field = *line;
    char *tab = strchr(field, '\t');
    *line = tab == NULL ? field + strlen(field) : tab + 1;
    if (tab != NULL) *tab = '\0';
    return field;
}

static uint64_t next_number(char **line) { return strtoull(next_field(line), NULL, 10); }

// The finding that is being read, or the use that other processes name: then `number` is not 0, and the use is the finding's earlier one.
// `use` is the one that frames belong to, or NULL.
struct reading {
    struct check_finding finding;
    struct check_use *use;
    uint64_t process, number;
    bool open;
};

static void read_number(struct reading *reading, char *line) {
    release_finding(&reading->finding);
    *reading = (struct reading){.process = reading->process, .number = next_number(&line), .open = true};
}

// A use of another process. Its stack and work are in that process's file.
static bool read_away(struct reading *reading, char *line) {
    const char *name = next_field(&line);
    for (size_t i = 0; i < CHECK_ROLES; i++) {
        if (strcmp(name, check_roles[i]) != 0 || reading->finding.has[i]) continue;
        reading->finding.has[i] = true;
        reading->finding.uses[i] = (struct check_use){.process = next_number(&line), .work = strdup("")};
        reading->finding.away[i] = next_number(&line);
        return reading->finding.uses[i].work != NULL;
    }
    return true;
}

static void read_head(struct reading *reading, char *line) {
    release_finding(&reading->finding);
    *reading = (struct reading){.process = reading->process, .open = true};
    (void)snprintf(reading->finding.kind, sizeof reading->finding.kind, "%s", next_field(&line));
    reading->finding.may = next_number(&line) != 0;
    reading->finding.address = next_number(&line);
    reading->finding.size_bytes = next_number(&line);
}

static bool read_use(struct reading *reading, char *line) {
    const char *name = next_field(&line);
    reading->use = NULL;
    for (size_t i = 0; i < CHECK_ROLES; i++) {
        if (strcmp(name, check_roles[i]) != 0 || reading->finding.has[i]) continue;
        reading->finding.has[i] = true;
        reading->use = &reading->finding.uses[i];
    }
    if (reading->use == NULL) return true;
    (void)snprintf(reading->use->effect, sizeof reading->use->effect, "%s", next_field(&line));
    reading->use->stream = next_number(&line);
    reading->use->is_default = next_number(&line) != 0;
    return (reading->use->work = strdup(next_field(&line))) != NULL;
}

static bool read_frame(struct check_use *use, char *line) {
    if (!make_room((void **)&use->frames, &use->frames_capacity, use->frame_count, sizeof *use->frames)) return false;
    struct check_frame *frame = &use->frames[use->frame_count];
    *frame = (struct check_frame){.name = strdup(next_field(&line))};
    frame->file = strdup(next_field(&line));
    frame->line = strtoll(next_field(&line), NULL, 10);
    use->frame_count++;
    return frame->name != NULL && frame->file != NULL;
}

// ---- Findings.

static bool are_equal_uses(const struct check_use *a, const struct check_use *b) {
    if (a->frame_count != b->frame_count || (a->work != NULL) != (b->work != NULL)) return false;
    if (a->work != NULL && strcmp(a->work, b->work) != 0) return false;
    for (size_t i = 0; i < a->frame_count; i++)
        if (a->frames[i].line != b->frames[i].line || strcmp(a->frames[i].name, b->frames[i].name) != 0 ||
            strcmp(a->frames[i].file, b->frames[i].file) != 0)
            return false;
    return true;
}

static bool are_equal(const struct check_finding *a, const struct check_finding *b) {
    if (strcmp(a->kind, b->kind) != 0 || a->may != b->may) return false;
    for (size_t i = CHECK_EARLIER; i <= CHECK_LATER_LAUNCH; i++)
        if (!are_equal_uses(&a->uses[i], &b->uses[i]) || a->away[i] != b->away[i] || a->uses[i].process != b->uses[i].process) return false;
    return true;
}

// Moves the numbered use that was read to its list.
static bool keep_numbered(struct check_findings *findings, struct reading *reading) {
    struct check_finding *from = &reading->finding;
    if (!make_room((void **)&findings->numbered, &findings->numbered_capacity, findings->numbered_count, sizeof *findings->numbered))
        return false;
    findings->numbered[findings->numbered_count++] = (struct check_numbered){.process = reading->process,
                                                                             .number = reading->number,
                                                                             .use = from->uses[CHECK_EARLIER],
                                                                             .launch = from->uses[CHECK_EARLIER_LAUNCH],
                                                                             .has_launch = from->has[CHECK_EARLIER_LAUNCH]};
    from->uses[CHECK_EARLIER] = from->uses[CHECK_EARLIER_LAUNCH] = (struct check_use){.stream = 0};
    release_finding(from);
    *reading = (struct reading){.process = reading->process};
    return true;
}

// Moves the finding that was read to the list, unless the list has an equal one. Begins a new one.
static bool keep_finding(struct check_findings *findings, struct reading *reading) {
    const bool whole = reading->open && reading->finding.has[CHECK_EARLIER] && reading->finding.has[CHECK_LATER];
    bool known = !whole;
    for (size_t i = 0; i < findings->count && !known; i++) known = are_equal(&findings->items[i], &reading->finding);
    if (!known && !make_room((void **)&findings->items, &findings->items_capacity, findings->count, sizeof *findings->items)) return false;
    if (known)
        release_finding(&reading->finding);
    else
        findings->items[findings->count++] = reading->finding;
    *reading = (struct reading){.process = reading->process};
    return true;
}

static bool keep_unseen(struct check_findings *findings, const char *name) {
    for (size_t i = 0; i < findings->unseen_count; i++)
        if (strcmp(findings->unseen[i], name) == 0) return true;
    if (!make_room((void **)&findings->unseen, &findings->unseen_capacity, findings->unseen_count, sizeof *findings->unseen)) return false;
    char *copied = strdup(name);
    if (copied != NULL) findings->unseen[findings->unseen_count++] = copied;
    return copied != NULL;
}

static bool read_line(struct check_findings *findings, struct reading *reading, char *line) {
    const char *word = next_field(&line);
    if (strcmp(word, VR_CHECK_LINES_FAILED) == 0) findings->failed = true;
    if (strcmp(word, VR_CHECK_LINES_UNSEEN) == 0) return keep_unseen(findings, next_field(&line));
    if (strcmp(word, "finding") == 0) read_head(reading, line);
    if (strcmp(word, VR_CHECK_LINES_NUMBER) == 0) read_number(reading, line);
    if (!reading->open) return true;
    if (strcmp(word, "block") == 0) {
        reading->finding.block = next_number(&line);
        reading->finding.block_bytes = next_number(&line);
    }
    if (strcmp(word, "use") == 0) return read_use(reading, line);
    if (strcmp(word, VR_CHECK_LINES_AWAY) == 0) return read_away(reading, line);
    if (strcmp(word, "frame") == 0 && reading->use != NULL) return read_frame(reading->use, line);
    if (strcmp(word, "end") != 0) return true;
    return reading->number != 0 ? keep_numbered(findings, reading) : keep_finding(findings, reading);
}

static bool read_file(struct check_findings *findings, const char *path, uint64_t process) {
    FILE *file = fopen(path, "re");
    struct reading reading = {.process = process};
    char *line = NULL;
    size_t capacity = 0;
    bool good = true;
    if (file == NULL) return true;
    for (ssize_t length; good && (length = getline(&line, &capacity, file)) >= 0;) {
        if (length > 0 && line[length - 1] == '\n') line[length - 1] = '\0';
        good = read_line(findings, &reading, line);
    }
    release_finding(&reading.finding);
    free(line);
    (void)fclose(file);
    return good;
}

// ---- Uses of other processes.

static bool copy_use(struct check_use *to, const struct check_use *from) {
    *to = (struct check_use){.process = to->process, .stream = from->stream, .is_default = from->is_default};
    memcpy(to->effect, from->effect, sizeof to->effect);
    bool good = (to->work = strdup(from->work == NULL ? "" : from->work)) != NULL;
    for (size_t i = 0; i < from->frame_count && good; i++) {
        good = make_room((void **)&to->frames, &to->frames_capacity, to->frame_count, sizeof *to->frames);
        if (!good) break;
        struct check_frame *frame = &to->frames[to->frame_count++];
        *frame =
            (struct check_frame){.name = strdup(from->frames[i].name), .file = strdup(from->frames[i].file), .line = from->frames[i].line};
        good = frame->name != NULL && frame->file != NULL;
    }
    return good;
}

// Fills in what a finding's role is in the other process. It stays unknown if that process did not note it.
static bool fill_away(const struct check_findings *findings, struct check_finding *finding, size_t role) {
    const struct check_numbered *found = NULL;
    for (size_t i = 0; i < findings->numbered_count && found == NULL; i++)
        if (findings->numbered[i].process == finding->uses[role].process && findings->numbered[i].number == finding->away[role])
            found = &findings->numbered[i];
    if (found == NULL || found->use.work == NULL) return true;
    release_use(&finding->uses[role]);
    if (!copy_use(&finding->uses[role], &found->use)) return false;
    if (role != CHECK_EARLIER || !found->has_launch || finding->has[CHECK_EARLIER_LAUNCH]) return true;
    finding->has[CHECK_EARLIER_LAUNCH] = true;
    finding->uses[CHECK_EARLIER_LAUNCH].process = finding->uses[role].process;
    return copy_use(&finding->uses[CHECK_EARLIER_LAUNCH], &found->launch);
}

static bool fill_all_away(const struct check_findings *findings) {
    bool good = true;
    for (size_t i = 0; i < findings->count && good; i++)
        for (size_t j = 0; j < CHECK_ROLES && good; j++)
            if (findings->items[i].away[j] != 0) good = fill_away(findings, &findings->items[i], j);
    return good;
}

static int is_findings(const struct dirent *entry) {
    const size_t length = strlen(entry->d_name), suffix = sizeof VR_CHECK_LINES_SUFFIX - 1;
    return length > suffix && strcmp(entry->d_name + length - suffix, VR_CHECK_LINES_SUFFIX) == 0;
}

bool check_findings_read(const char *folder, struct check_findings *findings) {
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, is_findings, versionsort);
    bool good = true;
    for (int i = 0; i < count; i++) {
        char path[4096];
        if (good && snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name) < (int)sizeof path)
            good = read_file(findings, path, strtoull(entries[i]->d_name, NULL, 10));
        free(entries[i]);
    }
    free(entries);
    return good && fill_all_away(findings);
}

void check_findings_drop_may(struct check_findings *findings) {
    for (size_t i = findings->count; i-- > 0;)
        if (findings->items[i].may) drop_finding(findings, i);
}

// ---- Suppressions: lines "KIND PATTERN". KIND may be *; PATTERN is a shell pattern that matches a frame ("NAME FILE:LINE") of any access
// in the finding.

static bool is_of_pattern(const struct check_finding *finding, const char *pattern) {
    char frame[8192];
    for (size_t i = 0; i < CHECK_ROLES; i++)
        for (size_t j = 0; j < finding->uses[i].frame_count; j++) {
            const struct check_frame *at = &finding->uses[i].frames[j];
            (void)snprintf(frame, sizeof frame, "%s %s:%" PRId64, at->name, at->file, at->line);
            if (fnmatch(pattern, frame, 0) == 0) return true;
        }
    return false;
}

static void suppress(struct check_findings *findings, const char *kind, const char *pattern) {
    for (size_t i = findings->count; i-- > 0;) {
        const struct check_finding *finding = &findings->items[i];
        if ((strcmp(kind, "*") != 0 && strcmp(kind, finding->kind) != 0) || !is_of_pattern(finding, pattern)) continue;
        findings->suppressed++;
        drop_finding(findings, i);
    }
}

static bool is_kind(const char *name) {
    static const char *const kinds[] = {"*",
#define KIND(constant, key) key,
                                        VR_CHECK_KINDS(KIND)
#undef KIND
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i], name) == 0) return true;
    return false;
}

// Applies a line that is empty, a comment or a rule. Returns false, with what is wrong, if it is something else.
static bool apply_line(struct check_findings *findings, char *line, char *wrong, size_t capacity) {
    line += strspn(line, " \t");
    line[strcspn(line, "\r\n")] = '\0';
    if (line[0] == '\0' || line[0] == '#') return true;
    char *end = line + strcspn(line, " \t"), *pattern = end + strspn(end, " \t");
    (void)snprintf(wrong, capacity, "expected a kind and a pattern, such as 'race *train.py:31'");
    if (*pattern == '\0') return false;
    *end = '\0';
    (void)snprintf(wrong, capacity, "there is no kind '%.60s'", line);
    if (!is_kind(line)) return false;
    suppress(findings, line, pattern);
    return true;
}

int check_findings_suppress(struct check_findings *findings, const char *path) {
    FILE *file = fopen(path, "re");
    char *line = NULL, wrong[120];
    size_t capacity = 0, number = 0;
    bool good = true;
    while (file != NULL && good && getline(&line, &capacity, file) >= 0) {
        number++;
        good = apply_line(findings, line, wrong, sizeof wrong);
    }
    const bool unread = file == NULL || (good && ferror(file) != 0);
    if (unread)
        ui_say("vram: %s: %s", path, strerror(errno));
    else if (!good)
        ui_say("vram: %s: line %zu: %s", path, number, wrong);
    free(line);
    if (file != NULL) (void)fclose(file);
    return good && !unread ? CLI_OK : CLI_BAD_INPUT;
}

// ---- Frames.

const struct check_use *check_call_of(const struct check_finding *finding, enum check_role role) {
    const enum check_role launch = role == CHECK_EARLIER ? CHECK_EARLIER_LAUNCH : CHECK_LATER_LAUNCH;
    return &finding->uses[finding->has[launch] ? launch : role];
}

bool check_frame_is_python(const struct check_frame *frame) {
    const size_t length = strlen(frame->file);
    return (length > 3 && strcmp(frame->file + length - 3, ".py") == 0) || frame->file[0] == '<';
}

// Returns whether the frame is in Python's own library or an installed package. Such frames are the last choice, because the mistake is
// usually in the program.
static bool is_library(const struct check_frame *frame) {
    return strstr(frame->file, "/site-packages/") != NULL || strstr(frame->file, "/dist-packages/") != NULL ||
           strstr(frame->file, "/lib/python") != NULL || frame->file[0] == '<';
}

const struct check_frame *check_use_place(const struct check_use *use) {
    const struct check_frame *python = NULL, *source = NULL;
    for (size_t i = 0; i < use->frame_count; i++) {
        const struct check_frame *frame = &use->frames[i];
        if (frame->line <= 0) continue;
        if (check_frame_is_python(frame) && !is_library(frame)) return frame;
        if (check_frame_is_python(frame) && python == NULL) python = frame;
        if (source == NULL) source = frame;
    }
    return python != NULL ? python : source;
}
