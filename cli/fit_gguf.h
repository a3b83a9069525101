// fit_gguf.h: GGUF files whose tensors are not there: the header says how large the file is, the rest is a hole.
#ifndef CLI_FIT_GGUF_H
#define CLI_FIT_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fit_gguf {
    uint64_t data_begin;   // where the first tensor begins
    uint64_t file_bytes;   // of the whole file
    uint64_t tensor_bytes; // of all tensors
    uint64_t tensor_count;
};

// Reads a file's header. False with what is wrong in `wrong`; *gguf is untouched then.
bool fit_gguf_read(const char *path, struct fit_gguf *gguf, char *wrong, size_t capacity);

// A program's arguments, of which those that name GGUF files name copies with a hole for the tensors, made in `folder`, and their other
// parts with them. Ends with NULL; to be given to fit_gguf_release(). NULL after a line on standard error.
char **fit_gguf_replace(char **program, const char *folder);
void fit_gguf_release(char **program);

#endif
