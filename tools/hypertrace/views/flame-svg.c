/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace flame: draw a flame graph, or write a file for speedscope
 *
 * A frame is the rectangle of a node. A viewer that runs no scripts shows all
 * frames. With the script, a click on a frame shows that frame and the frames
 * above it in full width, and a search marks the frames with a matching name.
 */
#include <inttypes.h>
#include <math.h>

#include "cli/escape.h"
#include "cli/json.h"
#include "cli/number.h"
#include "views/flame.h"

#define WIDTH           1200.0
#define MARGIN          10.0
#define PLOT            (WIDTH - 2 * MARGIN)
#define TOP             54.0
#define BOTTOM          34.0
#define ROW             17.0
/* width of a character in pixels; approximate, for the font below */
#define CHAR_WIDTH      6.6
#define LEVELS_MAX      200
/* nodes with less than 1/PARTS of the whole time are not drawn */
#define PARTS           20000

static const char style[] =
    "<style>"
    "svg{background:#fff;color-scheme:light}"
    "text{font:11px 'DejaVu Sans Mono',Menlo,Consolas,monospace;"
    "fill:#1f2328;pointer-events:none}"
    ".title{font:bold 15px 'DejaVu Sans',Verdana,sans-serif}"
    ".button{fill:#0550ae;cursor:pointer;pointer-events:auto}"
    "g.f rect{stroke:#fff;stroke-width:.5}"
    "g.f{cursor:pointer}"
    "g.f:hover rect{stroke:#1f2328}"
    ".c0{fill:#f2b28c}.c1{fill:#f5c77e}.c2{fill:#efa07a}.c3{fill:#f7d794}"
    ".c4{fill:#e8b96f}.c5{fill:#f3a683}.c6{fill:#e9c46a}.c7{fill:#f4a261}"
    ".special{fill:#c9d1d9}"
    ".faded{opacity:.5}.found rect{fill:#a371f7}.away{display:none}"
    "</style>\n";

/*
 * Script of the picture. It reads attributes of each frame: data-x is its begin
 * and data-w its width, in nanoseconds; data-d is its level; data-name is its
 * full name. A search shows the matching frames' percentage of the whole time.
 * The time of a match above another match is counted once.
 */
static const char script[] =
    "<script><![CDATA[\n"
    "'use strict';\n"
    "(() => {\n"
    "const margin = 10, width = 1200 - 2 * margin, letter = 6.6;\n"
    "const svg = document.documentElement;\n"
    "const frames = [...svg.querySelectorAll('g.f')].map(g => ({\n"
    "    g, rect: g.querySelector('rect'), text: g.querySelector('text'),\n"
    "    name: g.dataset.name, x: +g.dataset.x, w: +g.dataset.w,\n"
    "    d: +g.dataset.d}));\n"
    "const info = svg.querySelector('#info');\n"
    "const reset = svg.querySelector('#reset');\n"
    "const total = frames[0].w;\n"
    "const fit = (s, w) => {\n"
    "    const n = Math.floor((w - 6) / letter);\n"
    "    return n < 3 ? '' : s.length <= n ? s : s.slice(0, n - 2) + '..';\n"
    "};\n"
    "const zoom = to => {\n"
    "    for (const f of frames) {\n"
    "        const below = f.d < to.d && f.x <= to.x &&\n"
    "            f.x + f.w >= to.x + to.w;\n"
    "        const within = f.d >= to.d && f.x >= to.x &&\n"
    "            f.x + f.w <= to.x + to.w;\n"
    "        f.g.classList.toggle('away', !below && !within);\n"
    "        f.g.classList.toggle('faded', below);\n"
    "        const x = below ? 0 : (f.x - to.x) / to.w * width;\n"
    "        const w = below ? width : f.w / to.w * width;\n"
    "        f.rect.setAttribute('x', margin + x);\n"
    "        f.rect.setAttribute('width', w);\n"
    "        f.text.setAttribute('x', margin + x + 3);\n"
    "        f.text.textContent = fit(f.name, w);\n"
    "    }\n"
    "    reset.classList.toggle('away', to === frames[0]);\n"
    "};\n"
    "const search = () => {\n"
    "    const s = prompt('Search for (a regular expression):');\n"
    "    if (s === null) return;\n"
    "    let match;\n"
    "    try {\n"
    "        const r = new RegExp(s);\n"
    "        match = name => r.test(name);\n"
    "    } catch (e) { match = name => name.includes(s); }\n"
    "    let sum = 0, end = -1;\n"
    "    const found = frames.filter(f => s !== '' && match(f.name));\n"
    "    for (const f of frames)\n"
    "        f.g.classList.toggle('found', found.includes(f));\n"
    "    for (const f of found.sort((a, b) => a.x - b.x || a.d - b.d))\n"
    "        if (f.x >= end) { sum += f.w; end = f.x + f.w; }\n"
    "    info.textContent = s === '' ? '' : 'found in ' +\n"
    "        (100 * sum / total).toFixed(1) + '%';\n"
    "};\n"
    "for (const f of frames) {\n"
    "    f.g.addEventListener('click', () => zoom(f));\n"
    "    f.g.addEventListener('mouseover', () => {\n"
    "        info.textContent = f.g.querySelector('title').textContent;\n"
    "    });\n"
    "}\n"
    "reset.addEventListener('click', () => zoom(frames[0]));\n"
    "svg.querySelector('#search').addEventListener('click', search);\n"
    "svg.addEventListener('keydown', e => {\n"
    "    if (e.key === '/') { e.preventDefault(); search(); }\n"
    "    if (e.key === 'Escape') zoom(frames[0]);\n"
    "});\n"
    "})();\n"
    "]]></script>\n";

typedef struct Picture {
    GString *out;
    uint64_t total;
    unsigned levels;
    /* a frame with less time than this, in ns, is not drawn */
    uint64_t least;
} Picture;

static void attribute(GString *out, const char *name, double v)
{
    char buf[G_ASCII_DTOSTR_BUF_SIZE];

    g_string_append_printf(out, " %s=\"%s\"", name,
                           g_ascii_formatd(buf, sizeof(buf), "%.3f", v));
}

static void put_text(Picture *p, const char *attributes, double x, double y,
                     const char *s)
{
    g_string_append_printf(p->out, "<text %s", attributes);
    attribute(p->out, "x", x);
    attribute(p->out, "y", y);
    g_string_append_c(p->out, '>');
    ht_escape_str(p->out, HT_ESCAPE_XML, s);
    g_string_append(p->out, "</text>\n");
}

/* Cut a name to the width of its frame, as the script's fit() does. */
static char *fit(const char *name, double width)
{
    g_autofree char *valid = g_utf8_make_valid(name, -1);
    glong room = (width - 6) / CHAR_WIDTH;
    g_autofree char *cut = NULL;

    if (room < 3) {
        return g_strdup("");
    }
    if (g_utf8_strlen(valid, -1) <= room) {
        return g_strdup(name);
    }
    cut = g_utf8_substring(valid, 0, room - 2);
    return g_strconcat(cut, "..", NULL);
}

/*
 * Count the levels of names that are drawn. @cut is set if there are more than
 * LEVELS_MAX.
 */
static unsigned levels(const HtFlameNode *n, uint64_t least, unsigned depth,
                       bool *cut)
{
    GHashTableIter iter;
    unsigned most = depth + 1;
    gpointer above;

    if (depth >= LEVELS_MAX) {
        *cut = true;
        return depth;
    }
    if (n->children) {
        g_hash_table_iter_init(&iter, n->children);
        while (g_hash_table_iter_next(&iter, NULL, &above)) {
            if (((HtFlameNode *)above)->total >= least) {
                /*
                 * Do not call levels() within MAX(), which would evaluate the
                 * call twice.
                 */
                unsigned own = levels(above, least, depth + 1, cut);

                most = MAX(most, own);
            }
        }
    }
    return most;
}

static void draw(Picture *p, const HtFlameNode *n, uint64_t x, unsigned depth)
{
    double scale = PLOT / p->total;
    double left = MARGIN + x * scale, width = n->total * scale;
    double y = TOP + (p->levels - 1 - depth) * ROW;
    g_autoptr(GPtrArray) above = NULL;
    g_autofree char *label = fit(n->name, width);
    unsigned i;

    g_string_append_printf(p->out, "<g class=\"f\" data-d=\"%u\" data-x=\"%"
                           PRIu64 "\" data-w=\"%" PRIu64 "\" data-name=\"",
                           depth, x, n->total);
    ht_escape_str(p->out, HT_ESCAPE_XML, n->name);
    g_string_append(p->out, "\"><title>");
    ht_escape_str(p->out, HT_ESCAPE_XML, n->name);
    g_string_append(p->out, ": ");
    ht_number_duration(p->out, n->total, 0);
    g_string_append_printf(p->out, ", %.2f%%", 100.0 * n->total / p->total);
    if (n->self && n->self != n->total) {
        g_string_append(p->out, "; itself ");
        ht_number_duration(p->out, n->self, 0);
    }
    if (n->name[0] == '(') {
        g_string_append(p->out, "</title><rect class=\"special\"");
    } else {
        g_string_append_printf(p->out, "</title><rect class=\"c%u\"",
                               g_str_hash(n->name) % 8);
    }
    attribute(p->out, "x", left);
    attribute(p->out, "y", y);
    attribute(p->out, "width", width);
    attribute(p->out, "height", ROW - 1);
    g_string_append(p->out, "/>");
    put_text(p, "class=\"n\"", left + 3, y + 12, label);
    g_string_append(p->out, "</g>\n");
    if (depth + 1 >= p->levels) {
        return;
    }
    above = ht_flame_sorted(n);
    for (i = 0; i < above->len; i++) {
        const HtFlameNode *child = above->pdata[i];

        if (child->total >= p->least) {
            draw(p, child, x, depth + 1);
        }
        x += child->total;
    }
}

void ht_flame_svg(HtFlame *f, const char *title, GString *out)
{
    HtFlameNode *root = ht_flame_root(f);
    Picture p = { .out = out, .total = MAX(root->total, 1) };
    bool cut = false;
    double height;

    p.least = MAX(p.total / PARTS, 1);
    p.levels = levels(root, p.least, 0, &cut);
    height = TOP + p.levels * ROW + BOTTOM;
    g_string_append_printf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                           "<svg xmlns=\"http://www.w3.org/2000/svg\""
                           " viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\""
                           " height=\"%.0f\" tabindex=\"0\">\n", WIDTH, height,
                           WIDTH, height);
    g_string_append(out, style);
    put_text(&p, "class=\"title\"", MARGIN, 24, title);
    put_text(&p, "class=\"button away\" id=\"reset\"", MARGIN, 42, "show all");
    put_text(&p, "class=\"button\" id=\"search\"", WIDTH - 70, 24, "search");
    put_text(&p, "id=\"info\"", MARGIN, height - 12, "");
    if (cut) {
        put_text(&p, "class=\"n\"", WIDTH / 2, 24,
                 "higher levels are not drawn; --folded prints all");
    }
    draw(&p, root, 0, 0);
    g_string_append(out, script);
    g_string_append(out, "</svg>\n");
}

static void number_names(const HtFlameNode *n, GHashTable *names,
                         GPtrArray *order)
{
    g_autoptr(GPtrArray) above = ht_flame_sorted(n);
    unsigned i;

    for (i = 0; i < above->len; i++) {
        const HtFlameNode *child = above->pdata[i];

        if (!g_hash_table_contains(names, child->name)) {
            g_hash_table_insert(names, (char *)child->name,
                                GUINT_TO_POINTER(order->len));
            g_ptr_array_add(order, (char *)child->name);
        }
        number_names(child, names, order);
    }
}

/*
 * For each node with time of its own (HtFlameNode.self), write that time if
 * @weights is set, else the node's stack.
 */
static void put_samples(const HtFlameNode *n, GHashTable *names,
                        GArray *stack, HtJson *j, bool weights)
{
    g_autoptr(GPtrArray) above = ht_flame_sorted(n);
    unsigned i;

    if (n->self && weights) {
        ht_json_uint(j, NULL, n->self);
    } else if (n->self) {
        ht_json_open(j, NULL, '[');
        for (i = 0; i < stack->len; i++) {
            ht_json_uint(j, NULL, g_array_index(stack, unsigned, i));
        }
        ht_json_close(j, ']');
    }
    for (i = 0; i < above->len; i++) {
        const HtFlameNode *child = above->pdata[i];
        unsigned number = GPOINTER_TO_UINT(g_hash_table_lookup(names,
                                                               child->name));

        g_array_append_val(stack, number);
        put_samples(child, names, stack, j, weights);
        g_array_set_size(stack, stack->len - 1);
    }
}

void ht_flame_speedscope(HtFlame *f, const char *title, GString *out)
{
    g_autoptr(GHashTable) names = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) order = g_ptr_array_new();
    g_autoptr(GArray) stack = g_array_new(false, false, sizeof(unsigned));
    HtFlameNode *root = ht_flame_root(f);
    HtJson j = { .out = out };
    unsigned i;

    number_names(root, names, order);
    ht_json_open(&j, NULL, '{');
    ht_json_str(&j, "$schema",
                "https://www.speedscope.app/file-format-schema.json");
    ht_json_str(&j, "exporter", "hypertrace");
    ht_json_str(&j, "name", title);
    ht_json_open(&j, "shared", '{');
    ht_json_open(&j, "frames", '[');
    for (i = 0; i < order->len; i++) {
        ht_json_open(&j, NULL, '{');
        ht_json_str(&j, "name", order->pdata[i]);
        ht_json_close(&j, '}');
    }
    ht_json_close(&j, ']');
    ht_json_close(&j, '}');
    ht_json_open(&j, "profiles", '[');
    ht_json_open(&j, NULL, '{');
    ht_json_str(&j, "type", "sampled");
    ht_json_str(&j, "name", title);
    ht_json_str(&j, "unit", "nanoseconds");
    ht_json_uint(&j, "startValue", 0);
    ht_json_uint(&j, "endValue", root->total);
    ht_json_open(&j, "samples", '[');
    put_samples(root, names, stack, &j, false);
    ht_json_close(&j, ']');
    ht_json_open(&j, "weights", '[');
    put_samples(root, names, stack, &j, true);
    ht_json_close(&j, ']');
    ht_json_close(&j, '}');
    ht_json_close(&j, ']');
    ht_json_close(&j, '}');
    g_string_append_c(out, '\n');
}
