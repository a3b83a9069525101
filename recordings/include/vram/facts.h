// vram/facts.h: rows of facts. A row makes a member of a struct, a key of the JSON and a line of docs/reference/json.md.
//
// X(type, member, absent, sentence): `type` is one of those below, `absent` says when JSON has no value (VRAM_FACT_MEMBER() ignores it),
// and `sentence` is what the page says. Units are in the names: _bytes, _ns, _us; what has no unit is a count or an index.
#ifndef VRAM_FACTS_H
#define VRAM_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#define VRAM_FACT_U64  uint64_t
#define VRAM_FACT_I64  int64_t
#define VRAM_FACT_BOOL bool
#define VRAM_FACT_TEXT const char *

#define VRAM_FACT_MEMBER(type, member, absent, sentence) VRAM_FACT_##type member;

#endif
