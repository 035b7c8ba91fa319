/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: output of a command
 *
 * Each flush of an output of ht_output_stdout() writes to standard output. A
 * file of ht_output_file() gets its name only when it is complete. If the path
 * of ht_output_file() is a pipe, a character device or standard output, the
 * output is collected in a temporary file, and at the end copied to the path.
 */
#ifndef HYPERTRACE_TOOL_OUTPUT_H
#define HYPERTRACE_TOOL_OUTPUT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * HtOutput: an open output
 * @text: buffer to which the caller appends text
 * @terminal: the output is a terminal
 * @colour: ht_output_colour() appends the terminal's sequences for colours
 * @columns: width in characters that the caller's lines should not exceed
 *
 * After each few pieces of text, the caller calls ht_output_flush(), which
 * writes @text and empties it, or ht_output_room(), which does so only if @text
 * has 64 KiB or more.
 */
typedef struct HtOutput {
    GString *text;
    bool terminal;
    bool colour;
    unsigned columns;

    int fd;
    /* path given to ht_output_file(); NULL for ht_output_stdout() */
    char *path;
    /* name that a new file has until it is complete; NULL for other outputs */
    char *temporary;
    /*
     * descriptor of a pipe, a device or standard output, to which the
     * collected output is copied at the end; or -1
     */
    int target;
    /* number of bytes that were written to @fd from @text */
    uint64_t written;
    int error;
} HtOutput;

/**
 * ht_output_stdout: set up an output to standard output
 * @o: set up by the function
 */
void ht_output_stdout(HtOutput *o);

/**
 * ht_output_file: set up an output to a file; a regular file is written
 *                 completely or not at all
 * @o: set up by the function
 * @path: name of the file; ht_output_finish() replaces a regular file of that
 *        name, or a symbolic link to one, but not the target of the link. "-"
 *        is standard output. ht_output_finish() copies the output to standard
 *        output, a pipe or a character device. Other files are refused.
 * @errp: set on failure
 *
 * Until ht_output_finish(), a regular file has a temporary name in its
 * directory. SIGHUP, SIGINT and SIGTERM remove it, unless the process ignores
 * them. Only one such output may be open at a time.
 *
 * Returns: true if the output was opened
 */
bool ht_output_file(HtOutput *o, const char *path, GError **errp);

/**
 * ht_output_is_stream: whether a path is "-", a pipe or a character device
 * @path: a path of ht_output_file()
 *
 * Returns: true if so: the output then can be neither a folder nor many files
 */
bool ht_output_is_stream(const char *path);

/**
 * HtOutputName: an output that a command line asks for
 * @option: the option, for messages
 * @path: path of ht_output_file(); NULL: the command line has no such option
 */
typedef struct HtOutputName {
    const char *option;
    const char *path;
} HtOutputName;

/**
 * ht_output_is_stdout: whether a path is standard output
 * @path: a path of ht_output_file(), or NULL
 */
bool ht_output_is_stdout(const char *path);

/**
 * ht_output_clash: check that no two outputs are written to the same place
 * @outputs: the outputs of a command
 * @count: number of @outputs
 *
 * Any number of outputs may have the path /dev/null.
 *
 * Returns: a new message that names two outputs with the same place; NULL if no
 * two outputs have the same place
 */
char *ht_output_clash(const HtOutputName *outputs, unsigned count);

/**
 * ht_output_flush: write the buffer
 *
 * Returns: false if writing failed, now or before. The caller should stop then;
 * ht_output_finish() reports the error.
 */
bool ht_output_flush(HtOutput *o);

/**
 * ht_output_room: flush the buffer if it has 64 KiB or more
 *
 * Returns: false if writing failed, now or before
 */
static inline bool ht_output_room(HtOutput *o)
{
    return o->text->len < 65536 ? !o->error : ht_output_flush(o);
}

/**
 * ht_output_patch: overwrite a part of the output
 * @o: output of ht_output_file()
 * @at: offset in the output; the bytes there must have been flushed
 * @data: new bytes
 * @len: number of bytes
 *
 * Returns: false if writing failed, now or before
 */
bool ht_output_patch(HtOutput *o, uint64_t at, const void *data, gsize len);

/**
 * ht_output_finish: write the rest of the buffer, and give the file its name
 * @o: output; must not be used afterwards
 * @errp: set on failure
 *
 * If the output is a pipe whose reader has closed it (EPIPE), the function
 * succeeds.
 *
 * Returns: true on success
 */
bool ht_output_finish(HtOutput *o, GError **errp);

/**
 * ht_output_abort: drop the output, and remove the unfinished file
 * @o: output of ht_output_file(); must not be used afterwards
 */
void ht_output_abort(HtOutput *o);

/**
 * ht_output_catch: install a handler for SIGHUP, SIGINT and SIGTERM, except for
 *                  those of them that the process ignores
 * @handler: called in signal context, once for each of these signals. Before
 *           the call, the signal that arrived gets its default action back; the
 *           others keep the handler.
 */
void ht_output_catch(void (*handler)(int sig));

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
 * ht_output_colour: change the colour of the text that follows
 * @o: output; if @o->colour is false, the function does nothing
 * @colour: the colour; HT_COLOUR_NONE resets it
 */
void ht_output_colour(HtOutput *o, HtColour colour);

/**
 * ht_output_heading: append a line, in bold if @o->colour is true
 * @s: the line, without a newline; the function does not escape it
 */
void ht_output_heading(HtOutput *o, const char *s);

/**
 * ht_output_padded: append a text and fill it with spaces up to a width
 * @s: text, which may have any bytes; the function escapes it for a terminal
 * @width: width in characters; a longer text is cut and ends in "~", unless
 *         @width is -1, 0 or 1. If @width is negative, its absolute value is
 *         used, and the spaces come before the text.
 */
void ht_output_padded(HtOutput *o, const char *s, int width);

#endif /* HYPERTRACE_TOOL_OUTPUT_H */
