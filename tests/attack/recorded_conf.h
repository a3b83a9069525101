// recorded_conf.h: passes recordings with strange settings to everything that reads settings: reports, replays, cures, the search of
// settings.
#ifndef VR_TEST_RECORDED_CONF_H
#define VR_TEST_RECORDED_CONF_H

#include <stdbool.h>
#include <stdint.h>

// Makes a recording with `conf` in its settings, under random keys. Reads it as JSON and as a pickle, makes reports, replays it with its
// own settings and with `conf`, and cures it; with `also_tune`, searches settings. Aborts if a result is missing.
void recorded_conf_try(uint64_t *random, const char *conf, bool also_tune);

#endif
