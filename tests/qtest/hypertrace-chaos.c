/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace-chaos-test.c: make the backends of a QEMU, and check what they
 * have written
 */
#include "qemu/osdep.h"
#include "hypertrace-chaos.h"

const char *const chaos_backends[BACKENDS] = {
    [WITNESS] = "witness", [FIFO] = "fifo", [FULL] = "full", [CTF] = "ctf",
    [NOTHING] = "null",
};

void files_new(Files *f, bool hanging)
{
    *f = (Files) {
        .witness = qht_temporary(),
        .ctf = g_dir_make_tmp("hypertrace-chaos-XXXXXX", NULL),
        .fifo = qht_fifo_new(),
    };
    g_assert_nonnull(f->ctf);
    files_hang(f, hanging);
}

void files_args(const Files *f, GString *args)
{
    g_string_append_printf(args,
        " -object hypertrace-backend-log,id=witness,file=%s"
        " -object hypertrace-backend-log,id=fifo,file=%s"
        " -object hypertrace-backend-log,id=full,file=/dev/full"
        " -object hypertrace-backend-ctf,id=ctf,dir=%s/trace"
        " -object hypertrace-backend-null,id=null",
        f->witness, f->fifo->path, f->ctf);
}

void files_hang(Files *f, bool hanging)
{
    if (hanging) {
        qht_fifo_hang(f->fifo);
    } else {
        qht_fifo_go_on(f->fifo);
    }
    f->hanging = hanging;
}

static void remove_ctf(Files *f, const char *what)
{
    g_autofree char *rm = g_strdup_printf("rm -rf %s%s", f->ctf, what);

    g_assert_cmpint(system(rm), ==, 0);
}

void files_vanish(Files *f)
{
    remove_ctf(f, "/trace/dev*");
}

static void read_witness(Files *f, GByteArray *seen)
{
    uint64_t last[DEVICES][STREAMS] = { };
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    unsigned i;

    g_assert_true(g_file_get_contents(f->witness, &text, NULL, NULL));
    lines = g_strsplit(text, "\n", -1);
    for (i = 0; lines[i]; i++) {
        const char *p = strstr(lines[i], " dev"), *n = strstr(lines[i], " n=");
        unsigned device, stream;
        uint64_t number;

        if (!p || !n) {
            continue;
        }
        g_assert_cmpint(sscanf(p, " dev%u stream %u ", &device, &stream), ==,
                        2);
        g_assert_cmpuint(device, <, DEVICES);
        g_assert_cmpuint(stream, <, STREAMS);
        number = g_ascii_strtoull(n + 3, NULL, 10);
        g_assert_cmpuint(number, <, seen->len);
        g_assert_cmpuint(number, >=, last[device][stream]);
        last[device][stream] = number + 1;
        seen->data[number]++;
    }
}

void files_end(Files *f, GByteArray *seen)
{
    uint64_t lines = 0;
    const char *p;

    qht_fifo_hang(f->fifo);
    for (p = f->fifo->text->str; (p = strstr(p, " n=")); p++) {
        lines++;
    }
    if (f->lossy) {
        g_assert_cmpuint(lines + f->discarded, <=, f->posted);
    } else {
        g_assert_cmpuint(lines + f->discarded, ==, f->posted);
    }
    qht_fifo_free(f->fifo);
    read_witness(f, seen);
    qht_unlink(f->witness);
    if (f->disk) {
        qht_unlink(f->disk);
    }
    remove_ctf(f, "");
    g_free(f->ctf);
}
