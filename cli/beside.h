// beside.h: libraries of this project that the command hands to other programs, found beside itself: installed, or in a build folder.
#ifndef CLI_BESIDE_H
#define CLI_BESIDE_H

#include <stdbool.h>
#include <stddef.h>

// The library that `vram run` preloads; the environment variable VRAM_PRELOAD names another. False when it is not there.
bool beside_preload(char *path, size_t capacity);
// The folder with the simulated libcuda.so.1; VRAM_SIMCUDA names another.
bool beside_simcuda(char *path, size_t capacity);
// The folder with the small runtime, libcudart.so.13; VRAM_SIMCUDART names another.
bool beside_cudart(char *path, size_t capacity);
// The folder with the stand-ins for the libraries over CUDA.
bool beside_standins(char *path, size_t capacity);
// The auditor of the dynamic linker that puts stand-ins in front (simulator/standins/front).
bool beside_front(char *path, size_t capacity);
// The folder with what Python programs import at their start under `vram fit` (adapters/fit).
bool beside_fit(char *path, size_t capacity);
// The folder in which docs/ is.
bool beside_documents(char *path, size_t capacity);
// libvram, whose stacks the simulated driver takes.
bool beside_stacks(char *path, size_t capacity);

#endif
