// Reads any bytes as rules for read values: gives a result, never a crash; accepted rules are matched with frames and fill values.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../simulator/standins/common/read_values.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(struct vr_read_values *values, const char *text, size_t size) {
    unsigned char bytes[24];
    for (size_t i = 0; i < values->rule_count; i++) {
        struct vr_read_rule *rule = &values->rules[i];
        (void)vr_read_rule_matches(rule, text, text, 1);
        (void)vr_read_rule_is_of(rule, text);
        if (rule->count == 0 || rule->first + rule->count > values->value_count) __builtin_trap();
        for (size_t j = 0; j < sizeof bytes - 4; j++) {
            memset(bytes, 0xa5, sizeof bytes);
            vr_read_value_fill(vr_read_rule_next(values, rule), size, bytes, j);
            for (size_t k = j; k < sizeof bytes; k++)
                if (bytes[k] != 0xa5) __builtin_trap();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct vr_read_values values;
    struct vr_read_wrong wrong;
    char *text = malloc(size + 1);
    if (text == NULL) return 0;
    if (size != 0) memcpy(text, data, size);
    text[size] = '\0';
    if (vr_read_values_parse(text, &values, &wrong)) {
        use(&values, text, size);
        vr_read_values_release(&values);
    } else if (wrong.why[0] == '\0' || memchr(wrong.why, '\0', sizeof wrong.why) == NULL) {
        __builtin_trap();
    }
    free(text);
    return 0;
}
