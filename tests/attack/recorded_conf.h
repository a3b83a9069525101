// recorded_conf.h: recordings whose settings are strange, through what reads settings: reports, replays, cures, the search of settings.
#ifndef VR_TEST_RECORDED_CONF_H
#define VR_TEST_RECORDED_CONF_H

#include <stdbool.h>
#include <stdint.h>

// A recording with `conf` among its settings, under keys that are drawn: read as JSON and once more as a pickle, a report of each, replays
// with the settings it has and with `conf`, its cure; `also_tune`: the search of settings, too. Aborts where an answer is none.
void recorded_conf_try(uint64_t *random, const char *conf, bool also_tune);

#endif
