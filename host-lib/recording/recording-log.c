/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: convert records of the kernel's log to lines for a recording's
 * file "log", and read such lines
 */
#include "hypertrace/recording-log.h"

/* Maximum size of a line in bytes: a byte of the text may be written as four */
#define LINE_MAX_BYTES (128u + 4 * HT_LOG_TEXT_MAX)
/* Start of the record that panic() writes */
#define PANIC_TEXT "Kernel panic - not syncing"

struct HtLogReader {
    FILE *file;
    char *line;
    GString *text;
    uint64_t damaged;
};

void ht_log_record_write(const HtLogRecord *r, GString *out)
{
    size_t i;

    g_string_append_printf(out, "%u,%" PRIu64 ",%" PRIu64 ",%u,%c%u;",
                           8 * r->facility + r->level, r->seq, r->ns, r->boot,
                           r->caller & HT_LOG_CALLER_CPU ? 'C' : 'T',
                           r->caller & ~HT_LOG_CALLER_CPU);
    for (i = 0; i < r->len; i++) {
        unsigned char c = r->text[i];

        if (g_ascii_isprint(c) && c != '\\') {
            g_string_append_c(out, c);
        } else {
            g_string_append_printf(out, "\\x%02x", c);
        }
    }
    g_string_append_c(out, '\n');
}

bool ht_log_record_is_panic(const HtLogRecord *r)
{
    return !r->facility && r->len >= strlen(PANIC_TEXT) &&
           !memcmp(r->text, PANIC_TEXT, strlen(PANIC_TEXT));
}

HtLogReader *ht_log_reader_open(const char *dir, GError **error)
{
    g_autofree char *path = g_build_filename(dir, "log", NULL);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    HtLogReader *r;

    if (fd < 0 && errno == ENOENT) {
        return NULL;
    }
    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "cannot read %s: %s", path,
                    fd < 0 ? g_strerror(errno) : "it is no regular file");
        if (fd >= 0) {
            close(fd);
        }
        return NULL;
    }
    r = g_new0(HtLogReader, 1);
    r->file = fdopen(fd, "r");
    r->line = g_malloc(LINE_MAX_BYTES);
    r->text = g_string_new(NULL);
    return r;
}

void ht_log_reader_close(HtLogReader *r)
{
    if (r) {
        fclose(r->file);
        g_free(r->line);
        g_string_free(r->text, true);
        g_free(r);
    }
}

static bool number(const char **p, char end, uint64_t max, uint64_t *v)
{
    char *stop;

    if (!g_ascii_isdigit(**p)) {
        return false;
    }
    errno = 0;
    *v = g_ascii_strtoull(*p, &stop, 10);
    *p = stop + 1;
    return *stop == end && !errno && *v <= max;
}

static bool unescape(const char *p, GString *text)
{
    g_string_truncate(text, 0);
    for (; *p && *p != '\n'; p++) {
        char c = *p;

        if (c == '\\') {
            if (p[1] != 'x' || !g_ascii_isxdigit(p[2]) ||
                !g_ascii_isxdigit(p[3])) {
                return false;
            }
            c = g_ascii_xdigit_value(p[2]) << 4 | g_ascii_xdigit_value(p[3]);
            p += 3;
        }
        g_string_append_c(text, c);
    }
    return *p == '\n' && text->len <= HT_LOG_TEXT_MAX;
}

static bool parse(HtLogReader *r, HtLogRecord *record)
{
    const char *p = r->line;
    uint64_t priority, boot, caller;
    char kind;

    if (!number(&p, ',', 8 * UINT8_MAX + 7, &priority) ||
        !number(&p, ',', UINT64_MAX, &record->seq) ||
        !number(&p, ',', UINT64_MAX, &record->ns) ||
        !number(&p, ',', UINT32_MAX, &boot)) {
        return false;
    }
    kind = *p++;
    if ((kind != 'C' && kind != 'T') ||
        !number(&p, ';', HT_LOG_CALLER_CPU - 1, &caller) ||
        !unescape(p, r->text)) {
        return false;
    }
    record->boot = boot;
    record->level = priority % 8;
    record->facility = priority / 8;
    record->caller = caller | (kind == 'C' ? HT_LOG_CALLER_CPU : 0);
    record->text = r->text->str;
    record->len = r->text->len;
    return true;
}

bool ht_log_reader_next(HtLogReader *r, HtLogRecord *record)
{
    off_t at = ftello(r->file);

    while (fgets(r->line, LINE_MAX_BYTES, r->file)) {
        if (feof(r->file)) {
            /* The line has no newline: its rest is not written yet, or lost. */
            fseeko(r->file, at, SEEK_SET);
            break;
        }
        if (parse(r, record)) {
            return true;
        }
        r->damaged++;
        at = ftello(r->file);
    }
    clearerr(r->file);
    return false;
}

uint64_t ht_log_reader_damaged(const HtLogReader *r)
{
    return r->damaged;
}
