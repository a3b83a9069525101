// query.h: a query being answered: one function per row of queries.def.
#ifndef VR_EXPLORE_QUERY_QUERY_H
#define VR_EXPLORE_QUERY_QUERY_H

#include "explore/explored/explored.h"
#include "explore/query/answer.h"
#include "explore/query/parameters.h"

// What a query is about, and where its answer goes.
struct vr_query {
    struct vram_explorer *explorer;
    const struct vr_parameters *parameters;
    struct vr_answer *answer;
    struct vram_error *error; // may be NULL
};

// Answers one query by adding to query->answer. INVALID_ARGUMENT with a sentence, NO_HOST_MEMORY, LIMIT.
typedef enum vram_status (*vr_query_function)(const struct vr_query *query);
#define QUERY(name) enum vram_status vr_query_##name(const struct vr_query *query);
#include "explore/queries.def"
#undef QUERY

#endif
