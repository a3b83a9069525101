// Findings as JSON, and as SARIF for code hosts.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "check_findings.h"
#include "output.h"
#include "ui.h"
#include "vram/vram.h"

// ---- JSON.

static void put_frames(struct vr_json *json, const struct check_use *use) {
    vr_json_array(json, "stack");
    for (size_t i = 0; i < use->frame_count; i++) {
        vr_json_object(json, NULL);
        vr_json_string(json, "name", use->frames[i].name);
        vr_json_string(json, "file", use->frames[i].file);
        vr_json_i64(json, "line", use->frames[i].line);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

static void put_use(struct vr_json *json, const char *key, const struct check_use *use) {
    vr_json_object(json, key);
    vr_json_string(json, "work", use->work);
    vr_json_string(json, "effect", use->effect);
    vr_json_u64(json, "stream", use->stream);
    vr_json_u64(json, "process", use->process);
    vr_json_bool(json, "default_stream", use->is_default);
    put_frames(json, use);
    vr_json_object_end(json);
}

static void put_text(struct vr_json *json, const char *key, char *text) {
    vr_json_string(json, key, text);
    free(text);
}

static void put_finding(struct vr_json *json, const struct check_finding *finding) {
    vr_json_object(json, NULL);
    vr_json_string(json, "kind", finding->kind);
    vr_json_bool(json, "may", finding->may);
    put_text(json, "message", check_sentence(finding));
    put_text(json, "remedy", check_remedy(finding));
    vr_json_u64(json, "address", finding->address);
    vr_json_u64(json, "size_bytes", finding->size_bytes);
    vr_json_u64(json, "block_address", finding->block);
    vr_json_u64(json, "block_bytes", finding->block_bytes);
    for (size_t i = 0; i < CHECK_ROLES; i++) {
        if (finding->has[i])
            put_use(json, check_roles[i], &finding->uses[i]);
        else
            vr_json_null(json, check_roles[i]);
    }
    vr_json_object_end(json);
}

int check_json_print(const struct check_findings *findings) {
    struct answer_json answer;
    struct vr_json *json = answer_json_begin(&answer);
    vr_json_object(json, NULL);
    vr_json_array(json, "findings");
    for (size_t i = 0; i < findings->count; i++) put_finding(json, &findings->items[i]);
    vr_json_array_end(json);
    vr_json_u64(json, "suppressed", findings->suppressed);
    vr_json_array(json, "unseen");
    for (size_t i = 0; i < findings->unseen_count; i++) vr_json_string(json, NULL, findings->unseen[i]);
    vr_json_array_end(json);
    vr_json_bool(json, "complete", !findings->failed);
    vr_json_object_end(json);
    return answer_json_end(&answer, NULL);
}

// ---- SARIF 2.1.0.

static void put_message(struct vr_json *json, const char *key, char *text) {
    vr_json_object(json, key);
    put_text(json, "text", text);
    vr_json_object_end(json);
}

static void put_location(struct vr_json *json, const struct check_use *use) {
    const struct check_frame *frame = check_use_place(use);
    if (frame == NULL) return;
    vr_json_object(json, NULL);
    vr_json_object(json, "physicalLocation");
    vr_json_object(json, "artifactLocation");
    vr_json_string(json, "uri", frame->file);
    vr_json_object_end(json);
    vr_json_object(json, "region");
    vr_json_i64(json, "startLine", frame->line);
    vr_json_object_end(json);
    vr_json_object_end(json);
    put_message(json, "message", strdup(use->work));
    vr_json_object_end(json);
}

static void put_result(struct vr_json *json, const struct check_finding *finding) {
    vr_json_object(json, NULL);
    vr_json_string(json, "ruleId", finding->kind);
    vr_json_string(json, "level", finding->may ? "note" : "error");
    put_message(json, "message", check_sentence(finding));
    vr_json_array(json, "locations");
    put_location(json, check_call_of(finding, CHECK_LATER));
    vr_json_array_end(json);
    vr_json_array(json, "relatedLocations");
    put_location(json, &finding->uses[CHECK_EARLIER]);
    if (finding->has[CHECK_EARLIER_LAUNCH]) put_location(json, &finding->uses[CHECK_EARLIER_LAUNCH]);
    if (finding->has[CHECK_LATER_LAUNCH]) put_location(json, &finding->uses[CHECK_LATER]);
    if (finding->has[CHECK_FREED]) put_location(json, &finding->uses[CHECK_FREED]);
    vr_json_array_end(json);
    vr_json_object_end(json);
}

static void put_tool(struct vr_json *json) {
    vr_json_object(json, "tool");
    vr_json_object(json, "driver");
    vr_json_string(json, "name", "vram check");
    vr_json_string(json, "version", vram_version());
    vr_json_object_end(json);
    vr_json_object_end(json);
}

static void put_sarif(struct vr_json *json, const struct check_findings *findings) {
    vr_json_object(json, NULL);
    vr_json_string(json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    vr_json_string(json, "version", "2.1.0");
    vr_json_array(json, "runs");
    vr_json_object(json, NULL);
    put_tool(json);
    vr_json_array(json, "results");
    for (size_t i = 0; i < findings->count; i++) put_result(json, &findings->items[i]);
    vr_json_array_end(json);
    vr_json_object_end(json);
    vr_json_array_end(json);
    vr_json_object_end(json);
}

int check_sarif_write(const struct check_findings *findings, const char *path) {
    struct output *output = output_open(path);
    struct vr_text text = {0};
    struct vr_json json;
    if (output == NULL) return CLI_BAD_INPUT;
    vr_json_init(&json, &text, true);
    put_sarif(&json, findings);
    vr_text_puts(&text, "\n");
    const bool good = vr_text_status(&text) == VRAM_OK && output_write(output, vr_text_string(&text), text.length);
    vr_text_release(&text);
    return output_close(output, good);
}
