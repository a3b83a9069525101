#define _GNU_SOURCE // mkostemp()

#include "sim_environment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../simulator/standins/common/read_values.h"
#include "../simulator/standins/common/session.h"
#include "args.h"
#include "run_environment.h"
#include "ui.h"

#define PREFIX        "vram-session-"
#define PATH_CAPACITY 4096

// Returns the folder of shared memory if there is one, so that nothing is written to a disk.
static const char *folder_of(void) {
    struct stat facts;
    if (stat("/dev/shm", &facts) == 0 && S_ISDIR(facts.st_mode) && access("/dev/shm", W_OK) == 0) return "/dev/shm";
    const char *folder = getenv("TMPDIR");
    return folder == NULL || folder[0] == '\0' ? "/tmp" : folder;
}

// Removes files of ended sessions. exec() replaces this process with the program, so it cannot remove its own file; the next `vram sim`
// does. The number in a file's name is the process id, which the program keeps.
static void remove_ended(const char *folder) {
    DIR *entries = opendir(folder);
    if (entries == NULL) return;
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) != 0) continue;
        char *end;
        const long process = strtol(entry->d_name + sizeof PREFIX - 1, &end, 10);
        struct stat facts;
        if (process <= 0 || *end != '-' || kill((pid_t)process, 0) == 0 || errno != ESRCH) continue;
        if (fstatat(dirfd(entries), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0 || facts.st_uid != getuid()) continue;
        (void)unlinkat(dirfd(entries), entry->d_name, 0);
    }
    (void)closedir(entries);
}

static bool fill_session_file(int descriptor) {
    struct vr_session_file *file = NULL;
    if (ftruncate(descriptor, sizeof *file) != 0) return false;
    void *mapped = mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (mapped == MAP_FAILED) return false;
    file = mapped;
    atomic_store(&file->magic, VR_SESSION_MAGIC);
    (void)munmap(mapped, sizeof *file);
    return true;
}

void sim_session_put(void) {
    char path[PATH_CAPACITY];
    const char *folder = folder_of();
    (void)unsetenv("VRAM_SIM_SESSION");
    remove_ended(folder);
    if (snprintf(path, sizeof path, "%s/" PREFIX "%ld-XXXXXX", folder, (long)getpid()) >= (int)sizeof path) return;
    const int descriptor = mkostemp(path, O_CLOEXEC);
    if (descriptor < 0) return;
    const bool filled = fill_session_file(descriptor);
    (void)close(descriptor);
    if (!filled || setenv("VRAM_SIM_SESSION", path, 1) != 0) (void)unlink(path);
}

#define FOLDERS 4

// Sets the variable to `first`, a colon and its old value.
static bool put_path_first(const char *name, const char *first) {
    const char *before = getenv(name);
    if (before == NULL || before[0] == '\0') return setenv(name, first, 1) == 0;
    const size_t capacity = strlen(first) + strlen(before) + 2;
    char *value = malloc(capacity);
    if (value == NULL) return false;
    (void)snprintf(value, capacity, "%s:%s", first, before);
    const bool put = setenv(name, value, 1) == 0;
    free(value);
    return put;
}

// Collects the folders of the stand-ins for NVIDIA's libraries, separated by colons. An installed vram has them in one folder. AMD's
// runtime has its own folder, because programs that look for either use what they find.
static bool find_folders(char folders[FOLDERS * PATH_CAPACITY], bool hip) {
    char found[FOLDERS][PATH_CAPACITY] = {"", "", "", ""};
    if (!find_simcuda_folder(found[0], PATH_CAPACITY)) return false;
    if (!find_cudart_folder(found[1], PATH_CAPACITY)) found[1][0] = '\0'; // programs that call the driver do not need it
    if (!find_standins_folder(found[2], PATH_CAPACITY)) found[2][0] = '\0';
    if (hip && snprintf(found[3], PATH_CAPACITY, "%s/hip", found[2]) >= PATH_CAPACITY) return false;
    size_t used = 0;
    for (size_t i = 0; i < FOLDERS; i++) {
        if (found[i][0] == '\0' || (i > 0 && strcmp(found[i], found[0]) == 0)) continue;
        used += (size_t)snprintf(folders + used, FOLDERS * PATH_CAPACITY - used, "%s%s", used == 0 ? "" : ":", found[i]);
    }
    return true;
}

static bool put_environment(const char *folders) {
    char front[PATH_CAPACITY];
    if (!put_path_first("LD_LIBRARY_PATH", folders)) return false;
    // Without LD_AUDIT, or if the linker cannot read its path, the folders have to suffice.
    if (!find_front_library(front, sizeof front) || strchr(front, ':') != NULL) return true;
    return setenv("VRAM_SIM_FRONT", folders, 1) == 0 && put_path_first("LD_AUDIT", front);
}

int sim_front_put(bool hip) {
    char folders[FOLDERS * PATH_CAPACITY];
    if (!find_folders(folders, hip)) {
        ui_say("vram: cannot find the simulated libcuda.so.1; set VRAM_SIMCUDA to its folder");
        return CLI_DEVICE;
    }
    if (put_environment(folders)) return CLI_OK;
    ui_say("vram: cannot set the program's environment: %s", strerror(errno));
    return CLI_BAD_INPUT;
}

void sim_front_check(const char *program) {
    const char *why = run_check(program);
    if (why != NULL) ui_say("vram sim: %s cannot use the simulated driver: %s; running it anyway", program, why);
}

// Checks rules. `at` names their option or file in messages.
static bool are_rules(const char *command, const char *at, const char *text, bool lines) {
    struct vr_read_values made;
    struct vr_read_wrong wrong;
    const bool good = vr_read_values_parse(text, &made, &wrong);
    if (good)
        vr_read_values_release(&made);
    else if (lines && wrong.line > 0)
        (void)ui_usage(command, "vram: --values %s: line %zu: %s", at, wrong.line, wrong.why);
    else
        (void)ui_usage(command, "vram: %s: %s", at, wrong.why);
    return good;
}

// Appends rules and a newline to `text`, which has VR_READ_VALUES_BYTES. Returns false after a message.
static bool add_rules(const char *command, char *text, size_t *used, const char *more) {
    const size_t length = strlen(more);
    if (length + 2 > VR_READ_VALUES_BYTES - *used) {
        (void)ui_usage(command, "vram: the rules for values are longer than %d bytes", VR_READ_VALUES_BYTES - 1);
        return false;
    }
    memcpy(text + *used, more, length);
    *used += length;
    text[(*used)++] = '\n';
    text[*used] = '\0';
    return true;
}

// Reads the file into `bytes`, which has VR_READ_VALUES_BYTES + 1; add_rules() refuses a file that is too long.
static bool read_file(const char *command, const char *path, char *bytes) {
    FILE *file = fopen(path, "rb");
    size_t length = file == NULL ? 0 : fread(bytes, 1, VR_READ_VALUES_BYTES, file);
    const bool failed = file == NULL || ferror(file) != 0;
    const int why = errno;
    if (file != NULL) (void)fclose(file);
    if (failed)
        (void)ui_usage(command, "vram: --values %s: %s", path, strerror(why));
    else if (memchr(bytes, '\0', length) != NULL)
        (void)ui_usage(command, "vram: --values %s: it contains a NUL byte: not a text file", path);
    else
        return bytes[length] = '\0', true;
    return false;
}

// Returns whether --values is the word "none" instead of a file's name.
static bool is_none(const struct sim_values *values) { return values->file != NULL && strcmp(values->file, "none") == 0; }

static bool gather_rules(const char *command, const struct sim_values *values, char *text, char *bytes) {
    size_t used = 0;
    for (size_t i = 0; i < values->rules.count; i++)
        if (!are_rules(command, "--value", values->rules.values[i], false) || !add_rules(command, text, &used, values->rules.values[i]))
            return false;
    if (values->file != NULL && !is_none(values) &&
        !(read_file(command, values->file, bytes) && are_rules(command, values->file, bytes, true) &&
          add_rules(command, text, &used, bytes)))
        return false;
    if (values->nonzero == NULL) return true;
    if (snprintf(bytes, VR_READ_VALUES_BYTES, "aten::nonzero=%s", values->nonzero) >= VR_READ_VALUES_BYTES || strchr(bytes, '\n') != NULL) {
        (void)ui_usage(command, "vram: --nonzero takes a number or a percentage, such as 50%%");
        return false;
    }
    return are_rules(command, "--nonzero", bytes, false) && add_rules(command, text, &used, bytes);
}

bool sim_values_compute(const struct sim_values *values) {
    char folder[4096], bytes[24];
    if (is_none(values) || values->compute_bytes == 0 || !find_fit_folder(folder, sizeof folder)) return unsetenv("VRAM_SIM_COMPUTE") == 0;
    (void)snprintf(bytes, sizeof bytes, "%" PRIu64, values->compute_bytes);
    return setenv("VRAM_SIM_COMPUTE", bytes, 1) == 0 && put_path_first("PYTHONPATH", folder);
}

int sim_values_put(const char *command, const struct sim_values *values) {
    if (values->rules.count == 0 && (values->file == NULL || is_none(values)) && values->nonzero == NULL) return CLI_OK;
    char *text = calloc(2, VR_READ_VALUES_BYTES + 1), stacks[4096];
    int code = text == NULL ? CLI_BAD_INPUT : CLI_USAGE;
    if (text == NULL)
        ui_say("vram %s: not enough host memory", command);
    else if (gather_rules(command, values, text, text + VR_READ_VALUES_BYTES + 1))
        code = setenv("VRAM_SIM_VALUES", text, 1) == 0 ? CLI_OK : CLI_BAD_INPUT;
    // The simulated driver uses the stacks library to find where the program reads values.
    if (code == CLI_OK && find_stacks_library(stacks, sizeof stacks)) (void)setenv("VRAM_SIM_STACKS", stacks, 0);
    free(text);
    return code;
}
