// Prints findings as text: a sentence, both stacks, and the remedy.
#define _GNU_SOURCE // open_memstream()
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_findings.h"
#include "ui.h"

enum { COLUMNS = 80, FRAMES_SHOWN = 6 };

// ---- Words.

// Prints a kernel's name without its result, anonymous namespaces, template arguments and parameters.
static void put_name(FILE *text, const char *name) {
    static const char anonymous[] = "(anonymous namespace)::";
    const bool is_function = strchr(name, '(') != NULL;
    if (strncmp(name, "void ", 5) == 0 && is_function) name += 5;
    for (; *name != '\0' && (!is_function || *name != '<'); name++) {
        const size_t skipped = strncmp(name, anonymous, sizeof anonymous - 1) == 0 ? sizeof anonymous - 1 : 0;
        name += skipped;
        if (is_function && (*name == '(' || *name == '<' || *name == '\0')) break;
        (void)fputc(*name, text);
    }
}

static void put_work(FILE *text, const struct check_use *use) { put_name(text, use->work[0] == '\0' ? "work" : use->work); }

static void put_stream(FILE *text, const struct check_use *use) {
    if (use->stream == 0)
        (void)fputs("the host", text);
    else if (use->is_default)
        (void)fputs("the default stream", text);
    else
        (void)fprintf(text, "stream %" PRIu64, use->stream);
    if (use->process != 0) (void)fputs(" of another process", text);
}

// Prints the work and its stream: "a memset on the default stream".
static void put_subject(FILE *text, const struct check_use *use) {
    put_work(text, use);
    if (use->stream == 0 && use->process != 0) (void)fputs(" of another process", text);
    if (use->stream == 0) return;
    (void)fputs(" on ", text);
    put_stream(text, use);
}

static const char *verb_of(const struct check_use *use) {
    if (strcmp(use->effect, "read") == 0) return "reads";
    return strcmp(use->effect, "write") == 0 ? "writes" : "uses";
}

// Prints the preposition and "train.py:31", or nothing if the place is not known.
static void put_place(FILE *text, const char *preposition, const struct check_use *use) {
    const struct check_frame *frame = check_use_place(use);
    if (frame == NULL) return;
    const char *name = strrchr(frame->file, '/');
    (void)fprintf(text, " %s %s:%" PRId64, preposition, name == NULL ? frame->file : name + 1, frame->line);
}

// Prints the preposition and which call is meant: "before the memset at train.py:31". Two calls of a finding may be in one file. Prints
// nothing if the place is not known.
static void put_call(FILE *text, const char *preposition, const struct check_use *use) {
    const char *work = use->work[0] == '\0' ? "work" : use->work;
    if (check_use_place(use) == NULL) return;
    const bool has_article = strncmp(work, "a ", 2) == 0 || strncmp(work, "the ", 4) == 0;
    (void)fprintf(text, " %s the ", preposition);
    put_name(text, has_article ? strchr(work, ' ') + 1 : work);
    put_place(text, "at", use);
}

// Returns whether a frame is PyTorch's, so that the remedy can name its functions.
static bool uses_torch(const struct check_use *use) {
    for (size_t i = 0; i < use->frame_count; i++)
        if (strstr(use->frames[i].file, "torch") != NULL) return true;
    return false;
}

static bool is_of(const struct check_finding *finding, const char *kind) { return strcmp(finding->kind, kind) == 0; }

// Returns whether the later side is the free itself, not a use of the block that got the memory next.
static bool is_free(const struct check_finding *finding) {
    const struct check_use *later = &finding->uses[CHECK_LATER];
    return strncmp(later->work, "cuMem", 5) == 0 || strncmp(later->work, "the free", 8) == 0;
}

// Returns whether another process has freed the memory that it shares.
static bool is_freed_by_owner(const struct check_finding *finding) {
    return is_of(finding, "sharing") && finding->has[CHECK_FREED] && finding->uses[CHECK_FREED].process != 0;
}

// ---- The sentence.

// Returns whether a graph has overwritten the results of another one that has the same addresses.
static bool is_overwritten(const struct check_finding *finding) {
    return is_of(finding, "stale-graph") && finding->has[CHECK_EARLIER_LAUNCH];
}

// Describes a call that is wrong by itself, without another use. Returns false for other kinds.
static bool put_misuse(FILE *text, const struct check_finding *finding) {
    const bool freed = finding->has[CHECK_FREED];
    if (is_of(finding, "misuse") && !finding->has[CHECK_ALLOCATED])
        (void)fputs(" is refused", text);
    else if (is_of(finding, "misuse"))
        (void)fputs(freed ? " frees memory that was already freed" : " gets an address that is not the beginning of a block of its kind",
                    text);
    else if (is_of(finding, "out-of-bounds"))
        (void)fprintf(text, " reaches outside its block of %" PRIu64 " bytes", finding->block_bytes);
    else if (is_of(finding, "stale-graph"))
        (void)fputs(freed ? " uses memory that was freed after its capture" : " uses memory that was allocated again after its capture",
                    text);
    else
        return false;
    return true;
}

static void put_sentence(FILE *text, const struct check_finding *finding) {
    const struct check_use *earlier = &finding->uses[CHECK_EARLIER], *later = &finding->uses[CHECK_LATER];
    if (is_of(finding, "collective")) {
        (void)fprintf(text, "the ranks disagree: %s, and %s", later->work, earlier->work);
        return;
    }
    put_subject(text, later);
    if (is_overwritten(finding)) {
        (void)fputs(" reads memory that ", text);
        put_subject(text, earlier);
        (void)fputs(" overwrote: a graph that was captured earlier in the same pool was launched in between", text);
        return;
    }
    if (put_misuse(text, finding)) return;
    if (is_freed_by_owner(finding)) {
        (void)fprintf(text, " %s memory of another process that was already freed there", verb_of(later));
    } else if (is_free(finding)) {
        (void)fputs(" releases memory that ", text);
        put_subject(text, earlier);
        (void)fprintf(text, " still %s", verb_of(earlier));
    } else if (is_of(finding, "freed-in-use")) {
        (void)fprintf(text, " %s memory that ", verb_of(later));
        put_subject(text, earlier);
        (void)fprintf(text, " still %s: the block was freed too early", verb_of(earlier));
    } else if (is_of(finding, "host-race")) {
        (void)fprintf(text, " %s memory that ", verb_of(later));
        put_subject(text, earlier);
        (void)fprintf(text, " still %s", verb_of(earlier));
    } else if (is_of(finding, "use-after-free")) {
        (void)fprintf(text, " %s memory that was already freed", verb_of(later));
    } else if (is_of(finding, "never-written")) {
        (void)fputs(" reads uninitialized memory", text);
    } else {
        (void)fprintf(text, " %s memory that ", verb_of(later));
        put_subject(text, earlier);
        (void)fprintf(text, " %s, and nothing orders the two", verb_of(earlier));
    }
}

// Returns what `put` prints, owned by the caller. NULL if memory runs out.
static char *print_to_string(void (*put)(FILE *, const struct check_finding *), const struct check_finding *finding) {
    char *string = NULL;
    size_t length = 0;
    FILE *text = open_memstream(&string, &length);
    if (text == NULL) return NULL;
    put(text, finding);
    if (fclose(text) == 0) return string;
    free(string);
    return NULL;
}

char *check_sentence(const struct check_finding *finding) { return print_to_string(put_sentence, finding); }

// ---- The remedy.

// Prints the remedy for work of two processes.
static void put_wait_between_processes(FILE *text, const struct check_use *earlier, const struct check_use *later) {
    (void)fprintf(text, "call %s", uses_torch(earlier) ? "torch.cuda.synchronize()" : "cudaStreamSynchronize()");
    put_call(text, "after", earlier);
    (void)fputs(", before that process lets the other one go on", text);
    put_call(text, "to", later);
    (void)fputs("; or record an event there that both processes have (cudaIpcGetEventHandle), and let ", text);
    put_stream(text, later);
    (void)fputs(" wait for it", text);
}

// Prints the remedy in which the stream of `later` waits for that of `earlier`.
static void put_wait(FILE *text, const struct check_use *earlier, const struct check_use *later) {
    if (uses_torch(later)) {
        (void)fputs("call torch.cuda.current_stream().wait_stream(s)", text);
        put_call(text, "before", later);
        (void)fputs(", where s is ", text);
        put_stream(text, earlier);
        return;
    }
    (void)fputs("record an event on ", text);
    put_stream(text, earlier);
    put_call(text, "after", earlier);
    (void)fputs(", and let ", text);
    put_stream(text, later);
    (void)fputs(" wait for it (cudaStreamWaitEvent)", text);
    put_call(text, "before", later);
}

static void put_host_wait(FILE *text, const struct check_use *earlier, const struct check_use *later) {
    (void)fprintf(text, "call %s", uses_torch(later) ? "s.synchronize()" : "cudaStreamSynchronize(s)");
    put_call(text, "before", later);
    (void)fputs(", where s is ", text);
    put_stream(text, earlier);
}

// Returns false for kinds that a wait fixes.
static bool put_correction(FILE *text, const struct check_finding *finding) {
    if (is_overwritten(finding)) {
        (void)fputs("copy the memory before that launch", text);
        put_place(text, "at", check_call_of(finding, CHECK_EARLIER));
        (void)fputs(", or give the graphs pools of their own", text);
    } else if (is_of(finding, "stale-graph")) {
        (void)fputs("keep the memory until the last launch, or capture the graph again", text);
    } else if (is_of(finding, "out-of-bounds")) {
        (void)fprintf(text, "use at most %" PRIu64 " bytes from there", finding->block + finding->block_bytes - finding->address);
    } else if (is_of(finding, "collective")) {
        (void)fputs("make the same call with the same size, type and root on all ranks, in the same order", text);
    } else if (is_of(finding, "misuse") && finding->has[CHECK_ALLOCATED]) {
        (void)fputs("free each block once, with the address and the kind of function that allocated it", text);
    } else if (is_of(finding, "misuse")) {
        (void)fputs("destroy it after its last use", text);
        put_place(text, "at", &finding->uses[CHECK_LATER]);
    } else {
        return false;
    }
    return true;
}

static void put_remedy(FILE *text, const struct check_finding *finding) {
    const struct check_use *earlier = check_call_of(finding, CHECK_EARLIER), *later = check_call_of(finding, CHECK_LATER);
    const struct check_use *freed = finding->has[CHECK_FREED] ? &finding->uses[CHECK_FREED] : later;
    if (put_correction(text, finding)) return;
    if (is_of(finding, "never-written")) {
        (void)fprintf(text, "write the block from byte %" PRIu64 " on before it is read", finding->address - finding->block);
        put_place(text, "at", later);
    } else if (is_of(finding, "use-after-free") || is_freed_by_owner(finding)) {
        (void)fputs("free the memory", text);
        put_place(text, "at", freed);
        (void)fputs(" after its last use", text);
        put_place(text, "at", later);
    } else if (is_of(finding, "sharing")) {
        put_wait_between_processes(text, earlier, later);
    } else if (later->stream == 0) {
        put_host_wait(text, earlier, later);
    } else if (is_of(finding, "freed-in-use") && !is_free(finding) && uses_torch(freed)) {
        (void)fputs("call tensor.record_stream(s) before the tensor is freed", text);
        put_place(text, "at", freed);
        (void)fputs(", where s is ", text);
        put_stream(text, earlier);
    } else {
        put_wait(text, earlier, later);
    }
}

char *check_remedy(const struct check_finding *finding) { return print_to_string(put_remedy, finding); }

// ---- The report.

static void print_frame(FILE *file, const struct check_frame *frame) {
    (void)fputs("      ", file);
    ui_put(file, frame->name[0] == '\0' ? "?" : frame->name);
    (void)fputs(frame->line > 0 ? " at " : " in ", file);
    ui_put(file, frame->file[0] == '\0' ? "?" : frame->file);
    if (frame->line > 0) (void)fprintf(file, ":%" PRId64, frame->line);
    (void)fputc('\n', file);
}

// Prints the Python frames; if there are none, the innermost frames of machine code.
static void print_stack(FILE *file, const char *title, const struct check_use *use) {
    size_t python = 0, printed = 0;
    for (size_t i = 0; i < use->frame_count; i++) python += check_frame_is_python(&use->frames[i]);
    (void)fprintf(file, "    %s:%s\n", title, use->frame_count == 0 ? " (no stack)" : "");
    for (size_t i = 0; i < use->frame_count && printed < FRAMES_SHOWN; i++) {
        if (python > 0 && !check_frame_is_python(&use->frames[i])) continue;
        print_frame(file, &use->frames[i]);
        printed++;
    }
}

// Prints the stack of an earlier or later use. That of a graph's node has two: where it was captured, and where the graph was launched.
static void print_use(FILE *file, const char *title, const struct check_finding *finding, enum check_role role) {
    const struct check_use *call = check_call_of(finding, role);
    char of_capture[64];
    (void)snprintf(of_capture, sizeof of_capture, "%s, captured", title);
    print_stack(file, call == &finding->uses[role] ? title : of_capture, &finding->uses[role]);
    if (call != &finding->uses[role]) print_stack(file, "and launched with its graph", call);
}

static void print_wrapped(FILE *file, const char *lead, char *text) {
    char *line = NULL;
    (void)fprintf(file, "%s", lead);
    if (text != NULL && asprintf(&line, "%s.", text) >= 0) ui_wrap(file, line, (unsigned)strlen(lead), COLUMNS);
    (void)fputc('\n', file);
    free(line);
    free(text);
}

static const char *title_of_earlier(const struct check_finding *finding) {
    if (is_of(finding, "stale-graph") && !is_overwritten(finding)) return "captured";
    if (finding->uses[CHECK_EARLIER].process != 0) return "the earlier work, in another process";
    return is_of(finding, "misuse") && !finding->has[CHECK_ALLOCATED] ? "destroyed" : "the earlier work";
}

// Returns whether the earlier side is the block's allocation or free, which has a stack of its own.
static bool is_life(const struct check_finding *finding) {
    return is_of(finding, "use-after-free") || is_freed_by_owner(finding) || is_of(finding, "out-of-bounds") ||
           is_of(finding, "never-written") || (is_of(finding, "misuse") && finding->has[CHECK_ALLOCATED]);
}

static void print_finding(FILE *file, size_t number, const struct check_finding *finding) {
    char lead[32];
    (void)snprintf(lead, sizeof lead, "%3zu ", number);
    (void)fprintf(file, "%s%s%s\n", lead, finding->kind, finding->may ? " (perhaps)" : "");
    print_wrapped(file, "    ", check_sentence(finding));
    if (!is_life(finding) && !is_of(finding, "collective")) print_use(file, title_of_earlier(finding), finding, CHECK_EARLIER);
    const char *begun = is_freed_by_owner(finding) ? "opened" : "allocated";
    if (is_life(finding) || is_of(finding, "stale-graph")) print_stack(file, begun, &finding->uses[CHECK_ALLOCATED]);
    const char *freed = is_freed_by_owner(finding) ? "freed, in the process that allocated it" : "freed";
    if (finding->has[CHECK_FREED]) print_stack(file, freed, &finding->uses[CHECK_FREED]);
    print_use(file, is_free(finding) && !is_life(finding) ? "freed" : "the later work", finding, CHECK_LATER);
    print_wrapped(file, "    remedy: ", check_remedy(finding));
}

enum { NAMES_SHOWN = 4 };

// Prints what the answer does not cover: work whose memory is not known.
static void print_unseen(FILE *file, const struct check_findings *findings) {
    static const char lead[] = "vram check: not checked, because its memory is not known: ";
    const size_t shown = findings->unseen_count > NAMES_SHOWN + 1 ? NAMES_SHOWN : findings->unseen_count;
    char *string = NULL;
    size_t length = 0;
    FILE *text = findings->unseen_count == 0 ? NULL : open_memstream(&string, &length);
    if (text == NULL) return;
    (void)fputs(lead, text);
    for (size_t i = 0; i < shown; i++) {
        if (i > 0) (void)fputs(", ", text);
        put_name(text, findings->unseen[i]);
    }
    if (shown < findings->unseen_count) (void)fprintf(text, ", and %zu more kernels and calls (--json)", findings->unseen_count - shown);
    if (fclose(text) == 0) ui_wrap(file, string, 4, COLUMNS);
    (void)fputc('\n', file);
    free(string);
}

void check_text_print(const struct check_findings *findings) {
    for (size_t i = 0; i < findings->count; i++) print_finding(stderr, i + 1, &findings->items[i]);
    if (findings->suppressed > 0) ui_say("vram check: %zu suppressed", findings->suppressed);
    if (findings->count == 0)
        ui_say("vram check: no mistakes found");
    else
        ui_say("vram check: %zu mistake%s found", findings->count, findings->count == 1 ? "" : "s");
    print_unseen(stderr, findings);
    if (findings->failed) ui_say("vram check: not enough host memory: a part of the run was not checked");
}
