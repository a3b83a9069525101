#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "args.h"
#include "mcp.h"

const char *mcp_text(const cJSON *arguments, const char *name, const char *otherwise) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(arguments, name);
    return cJSON_IsString(item) ? item->valuestring : otherwise;
}

bool mcp_count(const cJSON *arguments, const char *name, int64_t least, int64_t most, int64_t *number, struct mcp_answer *answer) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(arguments, name);
    if (item == NULL || cJSON_IsNull(item)) return true;
    const double value = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    if (!(value >= (double)least && value <= (double)most) || value != floor(value)) {
        mcp_fail(answer, "%s: a whole number from %lld to %lld is wanted", name, (long long)least, (long long)most);
        return false;
    }
    *number = (int64_t)value;
    return true;
}

bool mcp_size(const cJSON *arguments, const char *name, uint64_t *bytes, struct mcp_answer *answer) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(arguments, name);
    if (item == NULL || cJSON_IsNull(item)) return true;
    if (cJSON_IsString(item) && args_size(item->valuestring, bytes)) return true;
    if (cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < 0x1p63) {
        *bytes = (uint64_t)item->valuedouble;
        return true;
    }
    mcp_fail(answer, "%s: a size such as 24GiB, or a number of bytes is wanted", name);
    return false;
}
