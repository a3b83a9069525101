// start_anomaly.c: what contradicts itself in a history, counted and in words.
#include <stdio.h>

#include "replay/start.h"

void vr_start_anomaly(struct vr_start *start, enum vr_anomaly anomaly, size_t event) {
    start->anomalies[anomaly]++;
    start->anomaly_total++;
    // The undo walks backwards: the anomaly told last is the first in the history.
    if (event != SIZE_MAX || start->anomaly_total == 1) {
        start->first_anomaly = anomaly;
        start->first_anomaly_event = event;
    }
}

void vr_start_describe(const struct vr_start *start, char *text, size_t capacity) {
    static const char *const sentences[] = {
#define SENTENCE(name, sentence) sentence,
        VR_ANOMALIES(SENTENCE)
#undef SENTENCE
    };
    const char *sentence = sentences[start->first_anomaly];
    if (start->first_anomaly_event == SIZE_MAX) {
        snprintf(text, capacity, "the history contradicts the final picture in %llu places, e.g. %s",
                 (unsigned long long)start->anomaly_total, sentence);
    } else {
        snprintf(text, capacity, "the history contradicts the final picture in %llu places, first at event %zu: %s",
                 (unsigned long long)start->anomaly_total, start->first_anomaly_event, sentence);
    }
}
