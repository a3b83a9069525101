#include "sim/modules/sim_ptx.h"

#include "base/hash.h"

// Each register has the set of parameters that its value was computed from, as bits. The code is read until no set grows: a loop may use a
// register above the place where it is set. An address is what an instruction has in brackets.

enum { WORDS_MOST = 64, PASSES_MOST = 16 };

struct analysis {
    struct vr_map names;     // hash of a parameter's name -> its number + 1
    struct vr_map registers; // hash of a register's name -> parameters
    uint8_t *effects;
    bool grew, failed;
};

static uint64_t hash_word(struct vr_sim_ptx_word word) { return vr_hash_bytes(1, word.start, word.length) | 1; }

static uint64_t parameters_of(const struct analysis *analysis, struct vr_sim_ptx_word word) {
    return vr_map_get(&analysis->registers, hash_word(word));
}

static void add_parameters(struct analysis *analysis, struct vr_sim_ptx_word word, uint64_t parameters) {
    const uint64_t before = parameters_of(analysis, word);
    if ((before | parameters) == before) return;
    analysis->grew = true;
    if (vr_map_set(&analysis->registers, hash_word(word), before | parameters) != VRAM_OK) analysis->failed = true;
}

static void add_effects(struct analysis *analysis, uint64_t parameters, uint8_t effect) {
    for (int i = 0; i < VR_SIM_PTX_PARAMETERS; i++)
        if ((parameters >> i & 1) != 0) analysis->effects[i] |= effect;
}

// ---- Instructions.

// One instruction: its opcode, then registers and names, each in brackets or not.
struct instruction {
    struct vr_sim_ptx_word opcode, words[WORDS_MOST];
    bool address[WORDS_MOST];
    size_t count;
};

static bool begins(struct vr_sim_ptx_word word, const char *with) {
    return word.length >= strlen(with) && memcmp(word.start, with, strlen(with)) == 0;
}

static bool has_part(struct vr_sim_ptx_word word, const char *part) {
    const size_t length = strlen(part);
    for (size_t i = 0; i + length <= word.length; i++)
        if (memcmp(word.start + i, part, length) == 0) return true;
    return false;
}

static bool is_register(struct vr_sim_ptx_word word) {
    // A predicate decides whether an instruction runs; it is not part of a value.
    return word.length > 1 && word.start[0] == '%' &&
           !(word.start[1] == 'p' && word.length > 2 && word.start[2] >= '0' && word.start[2] <= '9');
}

// Lines of source are directives that end with their line.
static bool is_line_directive(struct vr_sim_ptx_word word) { return vr_sim_ptx_equals(word, ".loc") || vr_sim_ptx_equals(word, ".file"); }

static void skip_line(struct vr_sim_ptx_text *text) {
    const char *end = memchr(text->at, '\n', (size_t)(text->end - text->at));
    text->at = end == NULL ? text->end : end;
}

// Reads to the next semicolon, or the brace of a block. Returns false at the end of the code.
static bool next_instruction(struct vr_sim_ptx_text *text, struct instruction *instruction) {
    unsigned depth = 0;
    bool predicate = false;
    *instruction = (struct instruction){.count = 0};
    for (struct vr_sim_ptx_word word = vr_sim_ptx_next(text); word.length != 0; word = vr_sim_ptx_next(text)) {
        const char first = word.start[0];
        if (first == ';' || ((first == '{' || first == '}') && instruction->opcode.length == 0)) return true; // else a vector
        if (is_line_directive(word)) {
            skip_line(text);
            continue;
        }
        if (first == '[') depth++;
        if (first == ']' && depth > 0) depth--;
        if (first == '@') predicate = true;
        if (first == ':') *instruction = (struct instruction){.count = 0}; // the word was a label
        if (!vr_sim_ptx_is_word(first)) continue;
        if (predicate) {
            predicate = false;
        } else if (instruction->opcode.length == 0) {
            instruction->opcode = word;
        } else if (instruction->count < WORDS_MOST) {
            instruction->words[instruction->count] = word;
            instruction->address[instruction->count++] = depth > 0;
        }
    }
    return false;
}

// Returns the parameters of the registers in brackets, or of those outside of them but the first `skip`.
static uint64_t sources_of(const struct analysis *analysis, const struct instruction *instruction, bool address, size_t skip) {
    uint64_t parameters = 0;
    for (size_t i = skip; i < instruction->count; i++)
        if (instruction->address[i] == address && is_register(instruction->words[i]))
            parameters |= parameters_of(analysis, instruction->words[i]);
    return parameters;
}

static void load_parameter(struct analysis *analysis, const struct instruction *instruction) {
    for (size_t i = 0; i < instruction->count; i++) {
        const uint64_t number = instruction->address[i] ? vr_map_get(&analysis->names, hash_word(instruction->words[i])) : 0;
        for (size_t j = 0; number != 0 && j < instruction->count; j++)
            if (!instruction->address[j] && is_register(instruction->words[j]))
                add_parameters(analysis, instruction->words[j], (uint64_t)1 << (number - 1));
    }
}

static void follow(struct analysis *analysis, const struct instruction *instruction) {
    const struct vr_sim_ptx_word opcode = instruction->opcode;
    const bool near = has_part(opcode, ".shared") || has_part(opcode, ".local") || has_part(opcode, ".const");
    if (begins(opcode, "ld.param"))
        load_parameter(analysis, instruction);
    else if (begins(opcode, "st.param"))
        add_effects(analysis, sources_of(analysis, instruction, false, 0), VR_SIM_PTX_ESCAPES);
    else if (begins(opcode, "cp."))
        add_effects(analysis, sources_of(analysis, instruction, true, 0), VR_SIM_PTX_ESCAPES);
    else if (begins(opcode, "st") && !near)
        add_effects(analysis, sources_of(analysis, instruction, true, 0), VR_SIM_PTX_WRITES);
    else if ((begins(opcode, "atom") || begins(opcode, "red.")) && !near)
        add_effects(analysis, sources_of(analysis, instruction, true, 0), VR_SIM_PTX_WRITES);
    else if (begins(opcode, "ld"))
        add_effects(analysis, near ? 0 : sources_of(analysis, instruction, true, 0), VR_SIM_PTX_READS);
    else if (instruction->count > 1 && is_register(instruction->words[0]))
        add_parameters(analysis, instruction->words[0], sources_of(analysis, instruction, false, 1));
}

// ---- Entries.

// Reads "(.param .u64 name, .param .align 8 .b8 name[24])".
static void read_names(struct analysis *analysis, struct vr_sim_ptx_text *text) {
    struct vr_sim_ptx_word name = {NULL, 0};
    uint64_t number = 0;
    bool array = false;
    for (struct vr_sim_ptx_word word = vr_sim_ptx_next(text); word.length != 0; word = vr_sim_ptx_next(text)) {
        const char first = word.start[0];
        if (first == '[' || first == ']') array = first == '[';
        if (vr_sim_ptx_is_word(first) && first != '.' && !array && (first < '0' || first > '9')) name = word;
        if ((first == ',' || first == ')') && name.length != 0) {
            if (++number <= VR_SIM_PTX_PARAMETERS && vr_map_set(&analysis->names, hash_word(name), number) != VRAM_OK)
                analysis->failed = true;
            name.length = 0;
        }
        if (first == ')') return;
    }
}

void vr_sim_ptx_effects(const char *code, size_t length, uint8_t effects[VR_SIM_PTX_PARAMETERS]) {
    struct analysis analysis = {.effects = effects, .grew = true};
    struct vr_sim_ptx_text text = {code, code + length};
    struct instruction instruction;
    memset(effects, 0, VR_SIM_PTX_PARAMETERS);
    read_names(&analysis, &text);
    const struct vr_sim_ptx_text body = text;
    for (int pass = 0; pass < PASSES_MOST && analysis.grew && !analysis.failed; pass++) {
        analysis.grew = false;
        text = body;
        for (bool more = true; more;) {
            more = next_instruction(&text, &instruction);
            if (instruction.opcode.length != 0) follow(&analysis, &instruction);
        }
    }
    uint8_t any = 0;
    for (int i = 0; i < VR_SIM_PTX_PARAMETERS; i++) any |= effects[i];
    for (int i = 0; i < VR_SIM_PTX_PARAMETERS && any != 0; i++) effects[i] |= VR_SIM_PTX_KNOWN;
    if (analysis.failed || analysis.grew) memset(effects, 0, VR_SIM_PTX_PARAMETERS);
    vr_map_release(&analysis.names);
    vr_map_release(&analysis.registers);
}
