// conf.h: draws random option strings together with their meaning for the naive model, so that the model needs no parser.
#ifndef VR_TEST_CONF_H
#define VR_TEST_CONF_H

#include "model/naive.h"

enum { CONF_TEXT = 512 };

// The options that may be drawn. X(CONSTANT, name on the command line)
#define CONF_KINDS(X)                                                                                                                      \
    X(DEFAULT, "default")                                                                                                                  \
    X(EXPANDABLE, "expandable")                                                                                                            \
    X(SPLIT, "split")                                                                                                                      \
    X(GC, "gc")                                                                                                                            \
    X(ROUNDUP, "roundup")                                                                                                                  \
    X(REJECT, "reject")                                                                                                                    \
    X(RESERVE, "reserve")                                                                                                                  \
    X(MIXED, "mixed")     /* all of them, changed at run time, expandable segments switched on and off */                                  \
    X(POOLS, "pools")     /* the same with private pools, routes, exact addresses and checkpoints */                                       \
    X(CAPTURE, "capture") /* and with captures of graphs */                                                                                \
    X(REUSE, "reuse")     /* and with graph_capture_record_stream_reuse */

enum conf_kind {
#define CONF_ENUM(name, text) CONF_##name,
    CONF_KINDS(CONF_ENUM)
#undef CONF_ENUM
        CONF_KIND_COUNT
};

const char *conf_kind_name(enum conf_kind kind);
// Returns false for an unknown name.
bool conf_kind_parse(const char *name, enum conf_kind *kind);

// Returns whether runs of this kind use private pools.
bool conf_has_pools(enum conf_kind kind);

// Draws an option string of this kind into text (CONF_TEXT bytes). at_run_time excludes options that only apply at creation.
void conf_draw(enum conf_kind kind, bool at_run_time, uint64_t *random, struct naive_conf *conf, char *text);

#endif
