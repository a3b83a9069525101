/*
 * Selects the mutant that a process runs. Every translation unit of a mutated build includes this file (-include). VRAM_MUTANT_FILE names a
 * file of 8 + VRAM_MUTANT_COUNT bytes that all test processes map: the number of the selected mutant (0: none, the original program), then
 * a byte per mutant, set when its place is reached. It is a file because tests start programs with other environments.
 */
#ifndef VRAM_TESTS_MUTATION_SELECTED_H
#define VRAM_TESTS_MUTATION_SELECTED_H

#if defined(__wasm__) || !defined(VRAM_MUTANT_FILE)
#define VR_MUTANT(number) 0
#else

// No header is included here: the file that follows chooses its feature macros itself.
int vr_mutants_open(const char *path, int flags, ...) __asm__("open");
void *vr_mutants_mmap(void *address, unsigned long bytes, int protection, int flags, int file, long offset) __asm__("mmap");
int vr_mutants_close(int file) __asm__("close");

// One copy in each program and library: weak, and not exported.
__attribute__((weak, visibility("hidden"))) volatile unsigned char *vr_mutants;

__attribute__((weak, visibility("hidden"), constructor)) void vr_mutants_map(void);
void vr_mutants_map(void) {
    enum { READ_WRITE = 2, CLOSE_ON_EXEC = 02000000, MAY_READ_WRITE = 3, SHARED = 1 }; // Linux: O_RDWR, O_CLOEXEC, PROT_*, MAP_SHARED
    if (vr_mutants) {
        return;
    }
    int file = vr_mutants_open(VRAM_MUTANT_FILE, READ_WRITE | CLOSE_ON_EXEC);
    if (file < 0) {
        return;
    }
    void *bytes = vr_mutants_mmap(0, 8 + VRAM_MUTANT_COUNT, MAY_READ_WRITE, SHARED, file, 0);
    vr_mutants_close(file);
    if (bytes != (void *)-1) {
        vr_mutants = (volatile unsigned char *)bytes;
    }
}

static inline __attribute__((unused)) int vr_mutant(unsigned number) {
    volatile unsigned char *bytes = vr_mutants;
    if (!bytes) {
        return 0;
    }
    if (!bytes[8 + number]) {
        bytes[8 + number] = 1;
    }
    return (unsigned)(bytes[0] | bytes[1] << 8) == number;
}
#define VR_MUTANT(number) __builtin_expect(vr_mutant(number), 0)

#endif
#endif
