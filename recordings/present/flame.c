// Prints call stacks as an SVG flame graph or as folded lines.
#include <stdio.h>

#include "analyze/stacktree.h"
#include "present/shared_texts.h"
#include "present/text_parts.h"

// ---- script: zoom and search in a browser ----

extern const char vr_flame_script[];

// A click on a box zooms it to the whole width; a second click resets. Ctrl-F or / asks for a text and frames the boxes that contain it.
// The picture is complete without the script.
const char vr_flame_script[] =
    "const W=1200,boxes=[...document.querySelectorAll('g')],hint=document.getElementById('hint');\n"
    "const say=(text)=>{hint.textContent=text||'click zooms, / searches';};\n"
    "function show(x,w,d){\n"
    "  for(const g of boxes){\n"
    "    const gx=+g.dataset.x,gw=+g.dataset.w,gd=+g.dataset.d,eps=1e-7;\n"
    "    const above=gd<d&&gx<=x+eps&&gx+gw>=x+w-eps,inside=gd>=d&&gx>=x-eps&&gx+gw<=x+w+eps;\n"
    "    g.style.display=above||inside?'':'none';\n"
    "    g.classList.toggle('dim',above);\n"
    "    if(!above&&!inside)continue;\n"
    "    const left=above?0:(gx-x)/w*W,wide=above?W:gw/w*W,rect=g.querySelector('rect');\n"
    "    rect.setAttribute('x',left);rect.setAttribute('width',Math.max(0.3,wide));\n"
    "    let text=g.querySelector('text');\n"
    "    const room=Math.floor(wide/7.2),name=g.dataset.n;\n"
    "    if(!text){text=document.createElementNS('http://www.w3.org/2000/svg','text');text.setAttribute('y',+rect.getAttribute('y')+13);"
    "g.append(text);}\n"
    "    text.setAttribute('x',left+3);\n"
    "    text.textContent=room<4?'':name.length<room?name:name.slice(0,room-1)+'\\u2026';\n"
    "  }\n"
    "}\n"
    "let chosen=null;\n"
    "for(const g of boxes)g.addEventListener('click',()=>{\n"
    "  chosen=g===chosen?boxes[0]:g;\n"
    "  show(+chosen.dataset.x,+chosen.dataset.w,+chosen.dataset.d);\n"
    "});\n"
    "addEventListener('keydown',(event)=>{\n"
    "  if(event.key!=='/'&&!(event.key==='f'&&(event.ctrlKey||event.metaKey)))return;\n"
    "  event.preventDefault();\n"
    "  const text=prompt('Which frames?');\n"
    "  let found=0;\n"
    "  for(const g of boxes){\n"
    "    const hit=!!text&&g.querySelector('title').textContent.toLowerCase().includes(text.toLowerCase());\n"
    "    g.classList.toggle('found',hit);\n"
    "    found+=hit;\n"
    "  }\n"
    "  say(text?found+' frames hold '+text:'');\n"
    "});\n"
    "say('');\n";

// ---- flame graphs ----

// Sizes of the picture in pixels, and the least share that a branch needs to be drawn.
enum { WIDTH = 1200, ROW = 18, TOP = 58, MOST_NODES = 20000 };
#define LEAST_SHARE (0.3 / WIDTH)

struct flame {
    struct vr_profile subject[2]; // [0]: now; [1]: the recording it is compared with
    bool compared;
    struct vr_stacktree tree;
};

static void close_flame(struct flame *flame) {
    vr_stacktree_release(&flame->tree);
    vr_profile_close(&flame->subject[0]);
    if (flame->compared) vr_profile_close(&flame->subject[1]);
}

static enum vram_status open_flame(const struct vram_recording *recording, const struct vram_recording *before,
                                   const struct vram_profile_options *options, struct flame *flame, struct vram_error *error) {
    *flame = (struct flame){.compared = false};
    VR_TRY(vr_profile_open(recording, options, &flame->subject[0], error));
    enum vram_status status = VRAM_OK;
    if (before != NULL) {
        status = vr_profile_open(before, options, &flame->subject[1], error);
        flame->compared = status == VRAM_OK;
    }
    if (status == VRAM_OK) status = vr_stacktree_init(&flame->tree, options->bottom_up, before != NULL);
    for (unsigned w = 0; w < 1 + (unsigned)flame->compared && status == VRAM_OK; w++) {
        struct vr_profile *subject = &flame->subject[w];
        flame->tree.fold = options->all_frames ? NULL : &subject->sites;
        status = vr_stacktree_add(&flame->tree, subject->model, &subject->lifetimes, subject->rows, subject->count, w);
    }
    if (status != VRAM_OK) close_flame(flame);
    return status;
}

// --- lines ---------------------------------------------------------------------------------------------------------------
// Prints "function (file:line)", without the line if it is unknown or two recordings are compared. Replaces separators of frames and lines
// with spaces.
static void put_flame_frame(struct vr_text *text, const struct vr_stacktree *tree, uint32_t node) {
    const uint32_t label = tree->node[node].label;
    const size_t start = text->length;
    vr_stacktree_function(tree, node, text);
    if (label != VR_TREE_NONE) {
        const struct vr_frame_label *frame = &tree->labels.label[label];
        const struct vr_frames *frames = &frame->model->frames;
        vr_text_printf(text, " (%.1000s", vr_model_string(frame->model, frames->filename[frame->frame]));
        if (!tree->labels.without_lines && frames->line[frame->frame] > 0)
            vr_text_printf(text, ":%lld", (long long)frames->line[frame->frame]);
        vr_text_puts(text, ")");
    }
    for (size_t i = start; i < text->length; i++) {
        if (text->bytes[i] == ';' || (unsigned char)text->bytes[i] < ' ') text->bytes[i] = ' ';
    }
}

enum { MOST_DEPTH = 2048 };

static void put_flame_line(struct vr_text *text, const struct flame *flame, uint32_t node) {
    uint32_t line[MOST_DEPTH];
    size_t depth = 0;
    for (uint32_t at = node; at != 0 && depth < MOST_DEPTH; at = flame->tree.node[at].parent) line[depth++] = at;
    for (size_t i = depth; i-- > 0;) {
        put_flame_frame(text, &flame->tree, line[i]);
        vr_text_puts(text, i == 0 ? " " : ";");
    }
    const uint64_t *own = flame->tree.node[node].own;
    if (flame->compared) vr_text_printf(text, "%llu ", (unsigned long long)own[1]);
    vr_text_printf(text, "%llu\n", (unsigned long long)own[0]);
}

enum vram_status vram_flame_folded(const struct vram_recording *recording, const struct vram_recording *before,
                                   const struct vram_profile_options *options, vram_write write, void *user, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, recording && options && write);
    struct flame flame;
    struct vr_text text = {0};
    VR_TRY(open_flame(recording, before, options, &flame, error));
    enum vram_status status = VRAM_OK;
    for (size_t i = 1; i < flame.tree.count && status == VRAM_OK; i++) {
        const struct vr_tree_node *node = &flame.tree.node[i];
        if (node->own[0] == 0 && node->own[1] == 0) continue;
        text.length = 0;
        put_flame_line(&text, &flame, (uint32_t)i);
        status = vr_text_hand_over(&text, write, user);
    }
    vr_text_release(&text);
    close_flame(&flame);
    return status;
}

// --- picture ---------------------------------------------------------------------------------------------------------------
static void put_xml(struct vr_text *text, const char *bytes, size_t length) {
    struct vr_text printable = {0};
    vr_text_printable(&printable, bytes, length);
    for (size_t i = 0; i < printable.length; i++) {
        const char c = printable.bytes[i];
        if (c == '&' || c == '<' || c == '>' || c == '"' || c == '\'')
            vr_text_printf(text, "&#%d;", c);
        else
            vr_text_append(text, &c, 1);
    }
    text->failed = text->failed || printable.failed;
    vr_text_release(&printable);
}

// The position of a picked node, as fractions of the whole width.
struct flame_box {
    double x, width;
    double used; // width used by children placed so far
    unsigned depth;
};

static double node_weight(const struct vr_tree_node *node) {
    return (double)(node->bytes[0] > node->bytes[1] ? node->bytes[0] : node->bytes[1]);
}

// Sets places[node] of all picked nodes. Returns the greatest depth.
static unsigned lay_out(const struct vr_stacktree *tree, const uint32_t *nodes, size_t count, struct flame_box *places) {
    unsigned deepest = 0;
    const double whole = node_weight(&tree->node[0]);
    places[0] = (struct flame_box){.width = 1};
    for (size_t i = 1; i < count; i++) {
        const struct vr_tree_node *node = &tree->node[nodes[i]];
        struct flame_box *parent = &places[node->parent], *place = &places[nodes[i]];
        const double room = parent->width - parent->used, width = whole > 0 ? node_weight(node) / whole : 0;
        *place = (struct flame_box){.x = parent->x + parent->used, .width = width < room ? width : room, .depth = parent->depth + 1};
        parent->used += place->width;
        if (place->depth > deepest) deepest = place->depth;
    }
    return deepest;
}

// Prints "function models.py:174", which distinguishes boxes of the same name, or the function alone if its place is unknown.
static void put_label(struct vr_text *text, const struct vr_stacktree *tree, uint32_t node) {
    const uint32_t label = tree->node[node].label;
    vr_stacktree_function(tree, node, text);
    if (label == VR_TREE_NONE) return;
    const struct vr_frame_label *frame = &tree->labels.label[label];
    const struct vr_frames *frames = &frame->model->frames;
    const char *file = vr_model_string(frame->model, frames->filename[frame->frame]), *slash = strrchr(file, '/');
    if (file[0] == '\0' || strcmp(file, "??") == 0 || frames->line[frame->frame] <= 0) return;
    vr_text_printf(text, " %.1000s", slash == NULL ? file : slash + 1);
    if (!tree->labels.without_lines) vr_text_printf(text, ":%lld", (long long)frames->line[frame->frame]);
}

// Prints a colour from Okabe and Ito's palette, chosen by the file's name. In a comparison: orange if the node grew, blue if it shrank,
// stronger for a larger change, grey if unchanged.
static void put_colour(struct vr_text *text, const struct vr_stacktree *tree, uint32_t node, bool compared) {
    static const unsigned char hues[][3] = {{86, 180, 233}, {230, 159, 0}, {0, 158, 115},  {204, 121, 167},
                                            {240, 228, 66}, {213, 94, 0},  {110, 130, 200}};
    const struct vr_tree_node *at = &tree->node[node];
    unsigned char colour[3] = {200, 200, 200};
    double strength = 0.55;
    if (compared && at->bytes[0] == at->bytes[1]) {
        strength = 0.35;
    } else if (compared) {
        const bool grew = at->bytes[0] > at->bytes[1];
        const double change = (double)(grew ? at->bytes[0] - at->bytes[1] : at->bytes[1] - at->bytes[0]);
        memcpy(colour, grew ? hues[5] : (const unsigned char[]){0, 114, 178}, sizeof colour);
        strength = 0.08 + 0.72 * change / node_weight(at);
    } else if (at->label != VR_TREE_NONE) {
        const struct vr_frame_label *label = &tree->labels.label[at->label];
        uint64_t hash = 0xcbf29ce484222325u;
        for (const char *c = vr_model_string(label->model, label->model->frames.filename[label->frame]); *c != '\0'; c++)
            hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
        memcpy(colour, hues[vr_mix64(hash) % VR_COUNT_OF(hues)], sizeof colour);
    }
    vr_text_puts(text, "#");
    for (unsigned i = 0; i < 3; i++) vr_text_printf(text, "%02x", (unsigned)(255 - strength * (255 - colour[i])));
}

// Prints "1.5 GiB (<0.1 %), 3 allocations", escaped for XML.
static void put_weight(struct vr_text *text, const struct flame *flame, const struct vr_tree_node *node) {
    struct vr_text plain = {0};
    if (flame->compared)
        vr_text_printf(&plain, "%s before, %s now", vr_bytes(node->bytes[1]).text, vr_bytes(node->bytes[0]).text);
    else
        vr_text_printf(&plain, "%s (%s), %s", vr_bytes(node->bytes[0]).text, vr_percent(node->bytes[0], flame->tree.node[0].bytes[0]).text,
                       vr_counted(node->count[0], "allocation").text);
    put_xml(text, vr_text_string(&plain), plain.length);
    text->failed = text->failed || plain.failed;
    vr_text_release(&plain);
}

static void put_node(struct vr_text *text, const struct flame *flame, uint32_t node, const struct flame_box *place) {
    const struct vr_tree_node *at = &flame->tree.node[node];
    struct vr_text name = {0}, full = {0};
    put_label(&name, &flame->tree, node);
    put_flame_frame(&full, &flame->tree, node);
    vr_text_printf(text, "<g data-x=\"%.6f\" data-w=\"%.6f\" data-d=\"%u\" data-n=\"", place->x, place->width, place->depth);
    put_xml(text, vr_text_string(&name), name.length);
    vr_text_puts(text, "\"><title>");
    put_xml(text, vr_text_string(&full), full.length);
    vr_text_puts(text, "&#10;");
    put_weight(text, flame, at);
    vr_text_printf(text, "</title><rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" fill=\"", place->x * WIDTH,
                   TOP + place->depth * ROW, place->width * WIDTH, ROW - 1);
    put_colour(text, &flame->tree, node, flame->compared);
    vr_text_puts(text, "\"/>");
    const size_t room = (size_t)(place->width * WIDTH / 7.2);
    if (room >= 4) {
        const size_t length = name.length < room ? name.length : room - 1;
        vr_text_printf(text, "<text x=\"%.2f\" y=\"%u\">", place->x * WIDTH + 3, TOP + place->depth * ROW + 13);
        put_xml(text, vr_text_string(&name), length);
        vr_text_puts(text, length < name.length ? "&#8230;</text>" : "</text>");
    }
    vr_text_puts(text, "</g>\n");
    text->failed = text->failed || name.failed || full.failed;
    vr_text_release(&name);
    vr_text_release(&full);
}

static void put_head(struct vr_text *text, const struct flame *flame, const struct vram_profile_options *options, const char *title,
                     unsigned deepest) {
    const unsigned height = TOP + (deepest + 1) * ROW + 30;
    vr_text_printf(text,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" viewBox=\"0 0 %d %u\" "
                   "font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"12\">\n"
                   "<style>g{cursor:pointer}g rect{stroke:#fff;stroke-width:.6}g:hover rect{stroke:#333}.dim{opacity:.35}.found "
                   "rect{stroke:#b3261e;stroke-width:2}</style>\n"
                   "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text x=\"8\" y=\"22\" font-size=\"16\" font-weight=\"600\">",
                   WIDTH, height, WIDTH, height);
    put_xml(text, title == NULL ? "GPU memory" : title, strlen(title == NULL ? "GPU memory" : title));
    vr_text_puts(text, "</text>\n<text x=\"8\" y=\"42\" fill=\"#555\">");
    vr_profile_device(&flame->subject[0], text);
    vr_text_puts(text, ", ");
    if (flame->compared)
        vr_text_printf(text, "%s before, %s now: orange grew, blue shrank, grey is unchanged", vr_bytes(flame->subject[1].bytes).text,
                       vr_bytes(flame->subject[0].bytes).text);
    else
        vr_text_printf(text, "%s in %s, ", vr_bytes(flame->subject[0].bytes).text, vr_counted(flame->subject[0].count, "allocation").text);
    if (!flame->compared) vr_profile_moment(&flame->subject[0], options, text);
    vr_text_printf(text, "; %s frames on top</text>\n", options->bottom_up ? "innermost" : "outermost");
    vr_text_printf(text, "<text id=\"hint\" x=\"%d\" y=\"22\" text-anchor=\"end\" fill=\"#555\"></text>\n", WIDTH - 8);
}

static enum vram_status draw_flame(const struct flame *flame, const struct vram_profile_options *options, const char *title,
                                   struct vr_text *text) {
    uint32_t *nodes = NULL;
    size_t count = 0;
    VR_TRY(vr_stacktree_pick(&flame->tree, (uint64_t)(node_weight(&flame->tree.node[0]) * LEAST_SHARE), MOST_NODES, &nodes, &count));
    struct flame_box *places = calloc(flame->tree.count, sizeof *places);
    if (places != NULL) {
        put_head(text, flame, options, title, lay_out(&flame->tree, nodes, count, places));
        for (size_t i = 0; i < count; i++) put_node(text, flame, nodes[i], &places[nodes[i]]);
        vr_text_puts(text, "<script><![CDATA[\n");
        vr_text_puts(text, vr_flame_script);
        vr_text_puts(text, "]]></script>\n</svg>\n");
    }
    free(places);
    free(nodes);
    return places == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
}

enum vram_status vram_flame_svg(const struct vram_recording *recording, const struct vram_recording *before,
                                const struct vram_profile_options *options, const char *title, vram_write write, void *user,
                                struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, recording && options && write);
    struct flame flame;
    struct vr_text text = {0};
    VR_TRY(open_flame(recording, before, options, &flame, error));
    enum vram_status status = draw_flame(&flame, options, title, &text);
    if (status == VRAM_OK) status = vr_text_hand_over(&text, write, user);
    vr_text_release(&text);
    close_flame(&flame);
    return status;
}
