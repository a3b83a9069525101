// oracle_play FILE...: plays lists of operations on this allocator. Each file has PyTorch's answers (format.md). Prints whether all answers
// are equal, and the first that is not. oracle_play --write FILE: writes the list with this allocator's answers instead.
//
// Exit status: 0 all equal, 1 a difference, 2 usage, 3 bad input.
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "play.h"
#include "vram/sim.h"

void play_say(struct play *play, const char *format, ...) {
    struct play_text *text = &play->out;
    for (;;) {
        const size_t room = text->capacity - text->length;
        va_list arguments;
        va_start(arguments, format);
        const int length = vsnprintf(text->bytes ? text->bytes + text->length : NULL, room, format, arguments);
        va_end(arguments);
        if (length >= 0 && (size_t)length < room) {
            text->length += (size_t)length;
            return;
        }
        if (length < 0 || vr_grow((void **)&text->bytes, &text->capacity, text->length + (size_t)length + 1, 1) != VRAM_OK) abort();
    }
}

int play_stream_number(const struct play *play, uint32_t device, uint64_t stream) {
    for (int i = 0; i < VR_WORLD_STREAMS; i++)
        if (play->world.stream[device][i] == stream) return i;
    return -1;
}

int play_pool_number(const struct play *play, struct vram_pool_id id) {
    if (id.first == 0 && id.second == 0) return 0;
    for (int i = 1; i < PLAY_POOLS; i++)
        if (play->pools[i].handle != NULL && play->pools[i].id.first == id.first && play->pools[i].id.second == id.second) return i;
    return -1;
}

// --- the file ---------------------------------------------------------------------------------------------------------------------------
static char *read_all(FILE *file) {
    char *bytes = NULL;
    size_t length = 0, capacity = 0, got;
    do {
        if (vr_grow((void **)&bytes, &capacity, length + 65536, 1) != VRAM_OK) abort();
        got = fread(bytes + length, 1, capacity - length - 1, file);
        length += got;
    } while (got > 0);
    bytes[length] = '\0';
    return bytes;
}

static const char *head_of(const char *line, const char *key) {
    const size_t length = strlen(key);
    return strncmp(line, "# ", 2) == 0 && strncmp(line + 2, key, length) == 0 && (line[2 + length] == ' ' || line[2 + length] == '\0')
               ? line + 2 + length + (line[2 + length] == ' ')
               : NULL;
}

// Returns the next line without its newline, or NULL at the end of the text.
static char *next_line(char **rest) {
    if (**rest == '\0') return NULL;
    char *line = *rest, *end = strchr(line, '\n');
    *rest = end ? end + 1 : line + strlen(line);
    if (end) *end = '\0';
    return line;
}

// --- operations, each on its thread -----------------------------------------------------------------------------------------------------
// A baton: the main thread reads the lines; the thread that a line names runs it, while the main thread waits.
struct hands {
    struct play *play;
    pthread_t thread[PLAY_THREADS];
    bool running[PLAY_THREADS];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char *line; // to be done by `turn`, then NULL
    uint32_t turn;
    bool over;
    enum vram_status status;
};
struct hand {
    struct hands *hands;
    uint32_t number;
};

static void *work(void *argument) {
    const struct hand hand = *(struct hand *)argument;
    struct hands *hands = hand.hands;
    free(argument);
    pthread_mutex_lock(&hands->lock);
    for (;;) {
        while (!hands->over && (hands->line == NULL || hands->turn != hand.number)) pthread_cond_wait(&hands->changed, &hands->lock);
        if (hands->over) break;
        hands->status = play_operation(hands->play, hands->line);
        hands->line = NULL;
        pthread_cond_broadcast(&hands->changed);
    }
    pthread_mutex_unlock(&hands->lock);
    return NULL;
}

static enum vram_status do_line(struct hands *hands, char *line) {
    const uint32_t thread = hands->play->thread;
    if (thread == 0 || strncmp(line, "thread", 6) == 0) return play_operation(hands->play, line);
    if (!hands->running[thread]) {
        struct hand *hand = malloc(sizeof *hand);
        if (hand == NULL) return VRAM_NO_HOST_MEMORY;
        *hand = (struct hand){hands, thread};
        if (pthread_create(&hands->thread[thread], NULL, work, hand) != 0) return VRAM_NO_HOST_MEMORY;
        hands->running[thread] = true;
    }
    pthread_mutex_lock(&hands->lock);
    hands->line = line;
    hands->turn = thread;
    pthread_cond_broadcast(&hands->changed);
    while (hands->line != NULL) pthread_cond_wait(&hands->changed, &hands->lock);
    pthread_mutex_unlock(&hands->lock);
    return hands->status;
}

static void end_hands(struct hands *hands) {
    pthread_mutex_lock(&hands->lock);
    hands->over = true;
    pthread_cond_broadcast(&hands->changed);
    pthread_mutex_unlock(&hands->lock);
    for (uint32_t i = 1; i < PLAY_THREADS; i++)
        if (hands->running[i]) (void)pthread_join(hands->thread[i], NULL);
}

// `generator = 2` is PyTorch's own allocation, which is repeated.
static void take_answer_off(char *line) {
    char *answer = strstr(line, " = ");
    if (answer == NULL) return;
    if (strncmp(line, "generator", 9) == 0)
        memmove(line + strlen("generator "), answer + 3, strlen(answer + 3) + 1);
    else
        *answer = '\0';
}

static bool is_picture(const char *line) {
    return strncmp(line, "stat ", 5) == 0 || strncmp(line, "block ", 6) == 0 || strncmp(line, "event ", 6) == 0;
}

static enum vram_status play_lines(struct play *play, char *text, size_t *line_number) {
    struct hands hands = {.play = play, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    enum vram_status status = VRAM_OK;
    char *rest = text;
    *line_number = 0;
    for (char *line = next_line(&rest); line != NULL && status == VRAM_OK; line = next_line(&rest)) {
        ++*line_number;
        if (*line == '#') play_say(play, "%s\n", line);
        if (*line == '#' || *line == '\0' || is_picture(line)) continue;
        take_answer_off(line);
        status = do_line(&hands, line);
    }
    end_hands(&hands);
    return status;
}

// --- one file ---------------------------------------------------------------------------------------------------------------------------
static enum vram_status open_play(struct play *play, const char *text, struct vram_error *error) {
    struct vr_world_options options = {.conf = play->conf};
    char sim[1024] = "";
    const char *conf = "";
    size_t conf_length = 0;
    unsigned major = 2, minor = 15;
    for (const char *line = text; *line == '#'; line = strchr(line, '\n') + 1) {
        const char *value;
        const size_t length = strcspn(line, "\n");
        if ((value = head_of(line, "sim"))) (void)snprintf(sim, sizeof sim, "%.*s", (int)(length - (size_t)(value - line)), value);
        if ((value = head_of(line, "torch"))) (void)sscanf(value, "%u.%u", &major, &minor);
        if ((value = head_of(line, "conf"))) conf = value, conf_length = length - (size_t)(value - line);
        if (line[length] == '\0') break;
    }
    play->version = major * 1000 + minor;
    play->captures = strstr(text, "\ncapture ") != NULL;
    (void)snprintf(play->conf, sizeof play->conf, "search_after_wait:False,pytorch:%u.%u%s%.*s", major, minor, conf_length ? "," : "",
                   (int)conf_length, conf);
    VR_TRY(vram_sim_parse(sim, &options.sim, error));
    play->blocks = calloc(PLAY_BLOCKS, sizeof *play->blocks);
    if (play->blocks == NULL) return VRAM_NO_HOST_MEMORY;
    return vr_world_open(&play->world, &options);
}

// Plays `text` (which is modified). Returns false, with a message on stderr, if it cannot be played or leaves something behind.
static bool play_text(struct play *play, const char *path, char *text) {
    struct vram_error error = {0};
    size_t line = 0;
    enum vram_status status = open_play(play, text, &error);
    if (status == VRAM_OK) status = play_lines(play, text, &line);
    if (status == VRAM_OK) status = vram_check(play->world.allocator, &error);
    vram_host_destroy(play->host);
    if (play->world.sim != NULL) (void)vr_world_close(&play->world);
    free(play->blocks);
    if (status != VRAM_OK) fprintf(stderr, "oracle_play: %s: line %zu: %s %s\n", path, line, vram_status_text(status), error.message);
    return status == VRAM_OK;
}

static int play_file(const char *path, bool write) {
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (file == NULL) return perror(path), 3;
    char *text = read_all(file);
    if (file != stdin) (void)fclose(file);
    char *theirs = malloc(strlen(text) + 1);
    struct play *play = calloc(1, sizeof *play);
    if (theirs == NULL || play == NULL) abort();
    memcpy(theirs, text, strlen(text) + 1);
    int code = play_text(play, path, text) ? 0 : 3;
    if (code == 0 && write) (void)fputs(play->out.bytes ? play->out.bytes : "", stdout);
    if (code == 0 && !write && !play_compare(path, play->out.bytes, theirs)) code = 1;
    free(play->out.bytes);
    free(play);
    free(theirs);
    free(text);
    return code;
}

int main(int argc, char **argv) {
    const bool write = argc > 1 && strcmp(argv[1], "--write") == 0;
    if (argc < 2 + write) {
        fprintf(stderr, "usage: oracle_play [--write] FILE...\n");
        return 2;
    }
    int worst = 0;
    for (int i = 1 + write; i < argc; i++) {
        const int code = play_file(argv[i], write);
        if (code > worst) worst = code;
    }
    return worst;
}
