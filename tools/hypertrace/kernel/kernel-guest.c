/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: boot a kernel in a temporary guest to get information about it
 *
 * QEMU emulates the machine, without KVM, in QEMU's own sandbox. The machine
 * has no disk and no network; its output is a serial port. Its initramfs has a
 * static busybox and the script below. The script compresses its data, and
 * prints a line with the size of the result and then the result.
 */
#include "hypertrace/base.h"
#include <elf.h>
#include <gio/gio.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "cli/file.h"
#include "hypertrace/ftrace-format.h"
#include "hypertrace/symbols.h"
#include "kernel/kernel.h"

/*
 * Maximum number of times to boot a kernel. QEMU's emulation may have errors,
 * so a kernel that did not print valid data is booted again.
 */
#define ATTEMPTS        2
/*
 * Number of bytes of the guest's output after which reading ends. The output
 * includes the compressed data.
 */
#define OUTPUT_MAX      (32u << 20)
#define TEXT_MAX        (HT_FT_FORMATS_MAX + HT_SYMBOLS_MAX)
#define DATA_LINE       "hypertrace-data "

/*
 * Script of the guest. It runs cat once for each event system, not once for
 * each event: a kernel has about 1,500 events, and emulated processes start
 * slowly.
 */
static const char init_script[] =
    "#!/bin/busybox sh\n"
    "b=/bin/busybox\n"
    "$b mkdir -p /proc /dev /tmp /trace\n"
    "$b mount -t proc none /proc\n"
    "$b mount -t devtmpfs none /dev\n"
    "$b mount -t tmpfs none /tmp\n"
    "$b mount -t tracefs none /trace\n"
    "$b stty raw -echo\n"
    "cd /trace/events\n"
    "{\n"
    "    $b uname -r\n"
    "    $b uname -m\n"
    "    $b cat /proc/version\n"
    "    for f in header_page header_event; do\n"
    "        echo \"header: $f\"\n"
    "        $b cat $f\n"
    "    done\n"
    "    for d in */; do\n"
    "        echo \"system: ${d%/}\"\n"
    "        $b cat $d*/format\n"
    "    done\n"
    "    echo kallsyms:\n"
    "    $b cat /proc/kallsyms\n"
    "} | $b gzip -1 >/tmp/data\n"
    "echo \"" DATA_LINE "$($b wc -c </tmp/data)\"\n"
    "$b cat /tmp/data\n"
    "$b poweroff -f\n";

static bool is_static(const char *path, HtMachine machine)
{
    g_autoptr(GMappedFile) file = ht_file_map(path, NULL);
    const uint8_t *p = file ? (void *)g_mapped_file_get_contents(file) : NULL;
    size_t size = file ? g_mapped_file_get_length(file) : 0, i;
    Elf64_Ehdr eh;
    Elf64_Phdr ph;

    if (size < sizeof(eh)) {
        return false;
    }
    memcpy(&eh, p, sizeof(eh));
    if (memcmp(eh.e_ident, ELFMAG, SELFMAG) ||
        eh.e_machine != (machine == HT_MACHINE_X86_64 ? EM_X86_64 :
                         EM_AARCH64) ||
        eh.e_phentsize != sizeof(ph) || eh.e_phoff > size ||
        eh.e_phnum > (size - eh.e_phoff) / sizeof(ph)) {
        return false;
    }
    for (i = 0; i < eh.e_phnum; i++) {
        memcpy(&ph, p + eh.e_phoff + i * sizeof(ph), sizeof(ph));
        if (ph.p_type == PT_INTERP) {
            return false;
        }
    }
    return true;
}

static const char *find_busybox(const char *given, HtMachine machine,
                                GError **error)
{
    static const char * const places[] = {
        "/bin/busybox", "/usr/bin/busybox", "/usr/local/bin/busybox",
    };
    unsigned i;

    if (given) {
        if (is_static(given, machine)) {
            return given;
        }
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "%s is not a static program for %s", given,
                    ht_machine_name(machine));
        return NULL;
    }
    for (i = 0; i < G_N_ELEMENTS(places); i++) {
        if (is_static(places[i], machine)) {
            return places[i];
        }
    }
    g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT,
                "no static busybox for %s: install busybox-static, or name "
                "one with --busybox", ht_machine_name(machine));
    return NULL;
}

/* Create a memfd with @data. Returns -1 with @error set on failure. */
static int make_file(const void *data, size_t size, GError **error)
{
    int fd = memfd_create("hypertrace", MFD_CLOEXEC);
    const char *p = data;

    while (fd >= 0 && size) {
        ssize_t n = write(fd, p, size);

        if (n < 0 && errno != EINTR) {
            break;
        }
        p += MAX(n, 0);
        size -= MAX(n, 0);
    }
    if (fd < 0 || size) {
        g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(errno),
                    "cannot create a file for the kernel's guest: %s",
                    g_strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    return fd;
}

static int make_initrd(const char *busybox, GError **error)
{
    g_autoptr(GByteArray) archive = g_byte_array_new();
    g_autofree char *program = NULL;
    gsize size;

    if (!ht_file_read(busybox, &program, &size, error)) {
        return -1;
    }
    ht_cpio_file(archive, "bin", S_IFDIR | 0755, "", 0);
    ht_cpio_file(archive, "bin/busybox", S_IFREG | 0755, program, size);
    ht_cpio_file(archive, "init", S_IFREG | 0755, init_script,
                 strlen(init_script));
    ht_cpio_end(archive);
    return make_file(archive->data, archive->len, error);
}

static int make_kernel(GBytes *content, const HtImage *image, GError **error)
{
    const uint8_t *p = g_bytes_get_data(content, NULL);

    return make_file(p + image->kernel_offset, image->kernel_size, error);
}

typedef struct Files {
    int kernel;
    int initrd;
} Files;

static void child_setup(gpointer opaque)
{
    const Files *files = opaque;

    fcntl(files->kernel, F_SETFD, 0);
    fcntl(files->initrd, F_SETFD, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/*
 * Start QEMU. Debian 12's QEMU sometimes emulates the x86 instruction
 * cmpxchg16b wrongly, so an x86 guest's processor does not have it. That QEMU
 * also makes errors if one processor executes code that another processor
 * patches, so the guest has only one processor.
 */
static bool spawn(const char *qemu, const HtImage *image, Files *files,
                  GPid *pid, int *out, GError **error)
{
    bool x86 = image->machine == HT_MACHINE_X86_64;
    g_autofree char *kernel =
        g_strdup_printf("/proc/self/fd/%d", files->kernel);
    g_autofree char *initrd =
        g_strdup_printf("/proc/self/fd/%d", files->initrd);
    const char *append = x86 ?
        "console=ttyS0 quiet loglevel=0 panic=-1 oops=panic "
        "nokaslr mitigations=off no_timer_check nohz=off" :
        "console=ttyAMA0 quiet loglevel=0 panic=-1 oops=panic "
        "nokaslr";
    const char *argv[] = {
        qemu, "-M", x86 ? "q35" : "virt",
        "-cpu", x86 ? "qemu64,-cx16" : "max", "-accel", "tcg,thread=single",
        "-m", "512", "-nodefaults", "-no-user-config", "-display", "none",
        "-no-reboot", "-sandbox", "on,obsolete=deny,elevateprivileges=deny,"
        "spawn=deny,resourcecontrol=deny",
        "-serial", "stdio", "-kernel", kernel, "-initrd", initrd,
        "-append", append, NULL
    };

    return g_spawn_async_with_pipes(NULL, (char **)argv, NULL,
                                    G_SPAWN_SEARCH_PATH |
                                    G_SPAWN_DO_NOT_REAP_CHILD,
                                    child_setup, files, pid, NULL, out, NULL,
                                    error);
}

/*
 * Read the guest's output until QEMU ends, OUTPUT_MAX bytes were read, or a
 * read fails. Returns false if @deadline passes first (g_get_monotonic_time(),
 * in us).
 */
static bool read_output(int fd, GByteArray *output, int64_t deadline)
{
    uint8_t buf[65536];
    ssize_t n = 1;

    while (n && output->len < OUTPUT_MAX) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        int64_t left = (deadline - g_get_monotonic_time()) / 1000;

        if (left <= 0) {
            return false;
        }
        if (poll(&p, 1, left) <= 0) {
            continue;
        }
        n = read(fd, buf, sizeof(buf));
        if (n > 0) {
            g_byte_array_append(output, buf, n);
        } else if (n < 0 && errno != EINTR) {
            break;
        }
    }
    return true;
}

/*
 * Find the compressed data. It follows the line that begins with DATA_LINE and
 * has the size of the data. Returns false if the data is not complete.
 */
static bool find_data(const GByteArray *output, const uint8_t **data,
                      size_t *size)
{
    const char *p = (const char *)output->data;
    const char *end = p + output->len, *line, *nl;
    uint64_t n;

    line = output->len ? g_strstr_len(p, output->len, DATA_LINE) : NULL;
    if (!line) {
        return false;
    }
    line += strlen(DATA_LINE);
    nl = memchr(line, '\n', MIN(end - line, 32));
    if (!nl) {
        return false;
    }
    n = g_ascii_strtoull(line, NULL, 10);
    if (!n || n > (uint64_t)(end - nl - 1)) {
        return false;
    }
    *data = (const uint8_t *)nl + 1;
    *size = n;
    return true;
}

static char *decompress(const uint8_t *data, size_t size, size_t *out_size)
{
    g_autoptr(GConverter) z =
        G_CONVERTER(g_zlib_decompressor_new(G_ZLIB_COMPRESSOR_FORMAT_GZIP));
    g_autoptr(GByteArray) text = g_byte_array_new();
    gsize used, made;
    char buf[65536];

    for (;;) {
        GConverterResult r = g_converter_convert(z, data, size, buf,
                                                 sizeof(buf),
                                                 G_CONVERTER_INPUT_AT_END,
                                                 &used, &made, NULL);

        if (r == G_CONVERTER_ERROR || text->len + made > TEXT_MAX) {
            return NULL;
        }
        data += used;
        size -= used;
        g_byte_array_append(text, (uint8_t *)buf, made);
        if (r == G_CONVERTER_FINISHED) {
            break;
        }
    }
    *out_size = text->len;
    g_byte_array_append(text, (const uint8_t *)"", 1);
    return (char *)g_byte_array_free(g_steal_pointer(&text), false);
}

static char *last_words(const GByteArray *output)
{
    unsigned n = MIN(output->len, 300);
    char *text = n ? g_strndup((char *)output->data + output->len - n, n) :
                 g_strdup("");
    char *p;

    for (p = text; *p; p++) {
        if (!g_ascii_isprint(*p)) {
            *p = ' ';
        }
    }
    return g_strstrip(text);
}

/*
 * Boot the guest once. Sets @error if QEMU does not start or @deadline passes.
 * Returns the decompressed text, which may be complete although @deadline has
 * passed; NULL if the output has no valid data. If QEMU was started, *@words is
 * replaced by the end of the output.
 */
static char *boot(const char *qemu, const HtImage *image, Files *files,
                  int64_t deadline, size_t *size, char **words,
                  GError **error)
{
    g_autoptr(GByteArray) output = g_byte_array_new();
    const uint8_t *data;
    char *text = NULL;
    size_t bytes;
    GPid pid;
    int fd;

    if (!spawn(qemu, image, files, &pid, &fd, error)) {
        return NULL;
    }
    if (!read_output(fd, output, deadline)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
                    "the kernel, booted by %s to get its event formats, takes "
                    "too long", qemu);
    }
    close(fd);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        ;
    }
    if (find_data(output, &data, &bytes)) {
        text = decompress(data, bytes, size);
    }
    g_free(*words);
    *words = last_words(output);
    return text;
}

static char *run(const char *qemu, const HtImage *image, Files *files,
                 unsigned seconds, size_t *size, GError **error)
{
    int64_t deadline = g_get_monotonic_time() + seconds * G_USEC_PER_SEC;
    g_autofree char *words = NULL;
    GError *failed = NULL;
    char *text = NULL;
    unsigned i;

    for (i = 0; !text && !failed && i < ATTEMPTS; i++) {
        text = boot(qemu, image, files, deadline, size, &words, &failed);
    }
    if (text) {
        g_clear_error(&failed);
    } else if (failed) {
        g_propagate_error(error, failed);
    } else {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
                    "the kernel, booted by %s to get its event formats, "
                    "did not print them; it printed: %s", qemu,
                    words[0] ? words : "nothing");
    }
    return text;
}

char *ht_kernel_guest(GBytes *content, const HtImage *image,
                      const char *qemu, const char *busybox, unsigned seconds,
                      size_t *size, GError **error)
{
    g_autofree char *name =
        g_strdup_printf("qemu-system-%s", ht_machine_name(image->machine));
    g_autofree char *program = g_find_program_in_path(name);
    Files files = { -1, -1 };
    char *text = NULL;

    busybox = find_busybox(busybox, image->machine, error);
    if (!busybox) {
        return NULL;
    }
    files.initrd = make_initrd(busybox, error);
    if (files.initrd < 0) {
        return NULL;
    }
    files.kernel = make_kernel(content, image, error);
    if (files.kernel >= 0) {
        text = run(program ? program : qemu ? qemu : name, image, &files,
                   seconds, size, error);
        close(files.kernel);
    }
    close(files.initrd);
    return text;
}
