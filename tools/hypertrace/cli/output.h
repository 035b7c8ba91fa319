/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: where a command's output goes
 *
 * Standard output, or a file that appears under its name when it is complete
 * and not before.
 */
#ifndef HYPERTRACE_TOOL_OUTPUT_H
#define HYPERTRACE_TOOL_OUTPUT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * HtOutput: an open output
 * @text: what is appended to it is written in the end
 * @terminal: it is a terminal
 * @colour: sequences that change the colour are welcome
 * @columns: how wide lines may be
 *
 * Append to @text and call ht_output_flush() or ht_output_room() now and then.
 */
typedef struct HtOutput {
    GString *text;
    bool terminal;
    bool colour;
    unsigned columns;

    int fd;
    char *path;                 /* NULL: standard output */
    char *temporary;
    uint64_t written;           /* bytes before @text */
    int error;                  /* errno of the first write that failed */
} HtOutput;

/**
 * ht_output_stdout: write to standard output
 * @o: set up
 */
void ht_output_stdout(HtOutput *o);

/**
 * ht_output_file: write to a file, whole or not at all
 * @o: set up
 * @path: its name in the end; a regular file of that name is replaced then
 * @errp: why it cannot be made
 *
 * Until ht_output_finish() the file has another name in the same directory; a
 * signal that ends the process removes it.  One such output at a time.
 *
 * Returns: whether it could be made
 */
bool ht_output_file(HtOutput *o, const char *path, GError **errp);

/**
 * ht_output_flush: write what was appended
 * @o: output
 *
 * Returns: false if it cannot be written, now or before; there is no point in
 * going on then, and ht_output_finish() says why
 */
bool ht_output_flush(HtOutput *o);

/**
 * ht_output_room: ht_output_flush() if a good deal was appended
 * @o: output
 *
 * Returns: as ht_output_flush()
 */
static inline bool ht_output_room(HtOutput *o)
{
    return o->text->len < 65536 ? !o->error : ht_output_flush(o);
}

/**
 * ht_output_patch: overwrite what was written before
 * @o: a file
 * @at: offset in the file; what is there has been flushed
 * @data: new bytes
 * @len: how many
 *
 * Returns: as ht_output_flush()
 */
bool ht_output_patch(HtOutput *o, uint64_t at, const void *data, gsize len);

/**
 * ht_output_finish: write the rest and give the file its name
 * @o: output; not to be used afterwards
 * @errp: what went wrong; not set if a reader simply went away (EPIPE)
 *
 * Returns: whether all was written, or the reader went away
 */
bool ht_output_finish(HtOutput *o, GError **errp);

/**
 * ht_output_abort: remove what was written to a file
 * @o: output; not to be used afterwards
 */
void ht_output_abort(HtOutput *o);

/* Colours; empty strings where they are not welcome */
typedef enum HtColour {
    HT_COLOUR_NONE,
    HT_COLOUR_DIM,
    HT_COLOUR_BOLD,
    HT_COLOUR_RED,
    HT_COLOUR_GREEN,
    HT_COLOUR_YELLOW,
    HT_COLOUR_BLUE,
    HT_COLOUR_CYAN,
} HtColour;

/**
 * ht_output_colour: append what changes the colour
 * @o: output
 * @colour: of what follows; HT_COLOUR_NONE ends any other
 */
void ht_output_colour(HtOutput *o, HtColour colour);

/**
 * ht_output_padded: append a text, and spaces up to a width
 * @o: output
 * @s: bytes of any value; escaped for a terminal
 * @width: columns; a longer text is cut and ends in "~"; negative: spaces
 *         come first
 */
void ht_output_padded(HtOutput *o, const char *s, int width);

#endif /* HYPERTRACE_TOOL_OUTPUT_H */
