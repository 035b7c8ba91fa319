/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <glib.h>

#include "qemu/redact.h"

/* A value of QEMU's options ends at a single comma; ",," is a comma in it. */
#define VALUE "(?:[^,]|,,)*"

static const struct {
    const char *pattern, *with;
} rules[] = {
    /*
     * The name of a block device's property may begin with the name of a lower
     * layer, as in "file.password".
     */
    { "(?:^|(?<=,))((?:[^=,.]*\\.)*"
      "(?:password|passwd|data|cookie|cookie-data|user-password))=" VALUE,
      "\\1=***" },
    { "([\"'](?:password|passwd|data|cookie|cookie-data|user-password)[\"']"
      "\\s*:\\s*)(?:\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*')",
      "\\1\"***\"" },
    { "(io\\.systemd\\.credential(?:\\.binary)?:[^=,]*=)" VALUE, "\\1***" },
    { "(opt/io\\.systemd\\.credentials/[^,]*,(?:string|file)=)" VALUE,
      "\\1***" },
    { "(://[^/@\\s,\"':]*:)[^/@\\s,\"']*@", "\\1***@" },
};

char *ht_redact(char **argv)
{
    g_auto(GStrv) words = g_strdupv(argv);
    unsigned i, j;

    for (i = 0; i < G_N_ELEMENTS(rules); i++) {
        g_autoptr(GRegex) regex = g_regex_new(rules[i].pattern,
                                              G_REGEX_OPTIMIZE | G_REGEX_RAW,
                                              0, NULL);

        for (j = 0; words[j]; j++) {
            char *clean = g_regex_replace(regex, words[j], -1, 0,
                                          rules[i].with, 0, NULL);

            /* If the regular expression fails, hide the whole word. */
            g_free(words[j]);
            words[j] = clean ? clean : g_strdup("***");
        }
    }
    return g_strjoinv(" ", words);
}
