/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: parse the guest's command line, and command lines
 * from the serial port
 */
#include "cmdline.h"
#include "console.h"
#include "libc.h"

#define WORDS_MAX       32

static char text_copy[1024];
static struct {
    char *name;
    /* text after the word's '='; NULL if the word has no '=' */
    char *value;
    bool used;
} words[WORDS_MAX];
static unsigned nr_words;

int cmdline_init(const char *text, const char *const *functions)
{
    int function = -1;
    size_t len = text ? strlen(text) : 0;
    char *p = text_copy;

    if (len >= sizeof(text_copy)) {
        payload_die(PAYLOAD_USAGE, "the command line is too long", NULL);
    }
    memcpy(text_copy, text, len);
    text_copy[len] = '\0';
    nr_words = 0;
    while (*p) {
        char *word = p;
        char *value = NULL;

        while (*p && *p != ' ') {
            if (*p == '=' && !value) {
                *p = '\0';
                value = p + 1;
            }
            p++;
        }
        if (*p) {
            *p++ = '\0';
        }
        if (!*word && !value) {
            continue;
        }
        if (function < 0) {
            /*
             * Skip words up to the function's name: in the loader's text, the
             * kernel's path comes first, and may contain several words.
             */
            for (int i = 0; !value && functions[i]; i++) {
                if (!strcmp(word, functions[i])) {
                    function = i;
                }
            }
            continue;
        }
        if (nr_words == WORDS_MAX) {
            payload_die(PAYLOAD_USAGE, "too many options", NULL);
        }
        words[nr_words].name = word;
        words[nr_words].value = value;
        words[nr_words].used = false;
        nr_words++;
    }
    return function;
}

const char *cmdline_str(const char *name, const char *otherwise)
{
    const char *value = otherwise;

    for (unsigned i = 0; i < nr_words; i++) {
        if (!strcmp(words[i].name, name)) {
            words[i].used = true;
            if (!words[i].value) {
                payload_die(PAYLOAD_USAGE, "option without a value", name);
            }
            value = words[i].value;
        }
    }
    return value;
}

uint64_t cmdline_u64(const char *name, uint64_t otherwise,
                     uint64_t min, uint64_t max)
{
    const char *text = cmdline_str(name, NULL);
    uint64_t v = 0;

    if (!text) {
        return otherwise;
    }
    for (const char *p = text; *p || p == text; p++) {
        if (*p < '0' || *p > '9' || v > (UINT64_MAX - 9) / 10) {
            payload_die(PAYLOAD_USAGE, "not a number", name);
        }
        v = v * 10 + (*p - '0');
    }
    if (v < min || v > max) {
        payload_die(PAYLOAD_USAGE, "number out of range", name);
    }
    return v;
}

void cmdline_done(void)
{
    for (unsigned i = 0; i < nr_words; i++) {
        if (!words[i].used) {
            payload_die(PAYLOAD_USAGE, "unknown option", words[i].name);
        }
    }
}
