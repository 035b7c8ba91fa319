/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Read kernel files: a small file in each compression that Linux's build knows,
 * if the program for it is installed, and distributions' kernels
 *
 * images-test [FILE...]: kernels to read; by default those in the project's
 * cache. Without any, the tests that read distributions' kernels are skipped.
 */
#include "hypertrace/kernel-image.h"
#include "kernel-make.h"
#include <elf.h>
#include <glob.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef HT_HAVE_LIBBPF
#include <bpf/btf.h>
#endif

static char **kernels;

/* Make 3 MiB that begin with an ELF header; the rest is partly random. */
static GBytes *make_elf(void)
{
    size_t size = 3u << 20, i;
    uint8_t *p = g_malloc(size);
    Elf64_Ehdr h = { .e_machine = GUINT16_TO_LE(EM_X86_64) };

    for (i = 0; i < size; i++) {
        p[i] = i % 1000 < 500 ? g_test_rand_int() : 0;
    }
    memcpy(h.e_ident, ELFMAG, SELFMAG);
    h.e_ident[EI_CLASS] = ELFCLASS64;
    h.e_ident[EI_DATA] = ELFDATA2LSB;
    memcpy(p, &h, sizeof(h));
    return g_bytes_new_take(p, size);
}

/* Compress bytes by a program; return NULL if the program is not installed. */
static GBytes *compress(GBytes *bytes, const char *const *argv)
{
    g_autofree char *path = g_find_program_in_path(argv[0]);
    g_autoptr(GError) error = NULL;
    g_autofree char *name = NULL, *command = NULL, *out = NULL;
    g_autofree char *words = g_strjoinv(" ", (char **)argv);
    const char *shell[] = { "sh", "-c", NULL, NULL };
    size_t size;
    int fd;

    if (!path) {
        return NULL;
    }
    fd = g_file_open_tmp("hypertrace-XXXXXX", &name, &error);
    g_assert_no_error(error);
    g_assert_cmpint(write(fd, g_bytes_get_data(bytes, NULL),
                          g_bytes_get_size(bytes)), ==,
                    g_bytes_get_size(bytes));
    close(fd);
    command = g_strdup_printf("%s <%s >%s.out", words, name, name);
    shell[2] = command;
    g_assert_true(g_spawn_sync(NULL, (char **)shell, NULL,
                               G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL,
                               NULL, &error));
    out = g_strconcat(name, ".out", NULL);
    g_clear_pointer(&command, g_free);
    g_assert_true(g_file_get_contents(out, &command, &size, &error));
    unlink(out);
    unlink(name);
    return g_bytes_new_take(g_steal_pointer(&command), size);
}

/* Make a bzImage with @packed as its compressed kernel of @unpacked bytes. */
static GBytes *make_bzimage(GBytes *packed, size_t unpacked)
{
    size_t size = g_bytes_get_size(packed), at = 5 * 512 + 100;
    uint8_t *p = g_malloc0(at + size + 4);

    p[0x1f1] = 4;
    memcpy(p + 0x202, "HdrS", 4);
    ht_put_le16(p + 0x206, 0x20f);
    ht_put_le32(p + 0x248, 100);
    ht_put_le32(p + 0x24c, size + 4);
    memcpy(p + at, g_bytes_get_data(packed, NULL), size);
    ht_put_le32(p + at + size, unpacked);
    return g_bytes_new_take(p, at + size + 4);
}

static const struct {
    const char *name;
    const char *argv[6];
} packers[] = {
    { "gzip", { "gzip", "-n", "-1" } },
    { "xz", { "xz", "-0", "--check=crc32", "--x86" , "--lzma2=preset=0" } },
    { "lzma", { "xz", "-0", "--format=lzma" } },
    { "bzip2", { "bzip2", "-1" } },
    { "zstd", { "zstd", "-q", "-1", "--ultra" } },
    { "lz4", { "lz4", "-q", "-l", "-1", "-c" } },
    { "lzo", { "lzop", "-1" } },
};

/*
 * Promise: a kernel in each compression of Linux's build is unpacked to its
 * bytes, both within a bzImage and as a compressed file alone. A bzImage that
 * is cut off is refused. A compression without its program is left out.
 */
static void test_formats(void)
{
    g_autoptr(GBytes) elf = make_elf();
    unsigned i, done = 0;

    for (i = 0; i < G_N_ELEMENTS(packers); i++) {
        g_autoptr(GBytes) packed = compress(elf, packers[i].argv);
        g_autoptr(GBytes) image = NULL, kernel = NULL, bare = NULL;
        g_autoptr(GError) error = NULL;
        const void *p;
        size_t size;

        if (!packed) {
            g_test_message("%s is not installed", packers[i].argv[0]);
            continue;
        }
        image = make_bzimage(packed, g_bytes_get_size(elf));
        p = g_bytes_get_data(image, &size);
        kernel = ht_image_unpack(p, size, &error);
        if (g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOSYS)) {
            /* without this format's library, the error names the format */
            g_assert_nonnull(strstr(error->message, packers[i].name));
            continue;
        }
        g_assert_no_error(error);
        g_assert_true(g_bytes_equal(kernel, elf));
        /* the compressed file alone, as arm64's Image.gz */
        bare = ht_image_unpack(g_bytes_get_data(packed, NULL),
                               g_bytes_get_size(packed), &error);
        g_assert_no_error(error);
        g_assert_true(g_bytes_equal(bare, elf));
        g_assert_null(ht_image_unpack(p, size / 2, &error));
        g_assert_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL);
        done++;
    }
    g_assert_cmpuint(done, >=, 2);
}

/*
 * Promise: data that have only the first bytes of a kernel image are refused,
 * with an error.
 */
static void test_refused(void)
{
    static const char *const texts[] = { "", "MZ", "\177ELF", "HdrS" };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        uint8_t bytes[2048] = { 0 };

        memcpy(bytes, texts[i], strlen(texts[i]));
        g_assert_null(ht_kernel_image_parse(bytes, sizeof(bytes), &error));
        g_assert_nonnull(error);
    }
}

/*
 * Promise: a FIFO, a device, a link to a device, a folder and a file that is
 * larger than HT_IMAGE_FILE_MAX are refused: another user may have put them in
 * place of a kernel.
 */
static void test_files(void)
{
    g_autofree char *dir = g_dir_make_tmp("ht-images-XXXXXX", NULL);
    g_autofree char *fifo = g_build_filename(dir, "fifo", NULL);
    g_autofree char *huge = g_build_filename(dir, "huge", NULL);
    g_autofree char *link = g_build_filename(dir, "link", NULL);
    const char *paths[] = { fifo, huge, link, dir, "/dev/zero" };
    unsigned i;

    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    g_assert_true(g_file_set_contents(huge, "", 0, NULL));
    g_assert_cmpint(truncate(huge, (off_t)HT_IMAGE_FILE_MAX + 1), ==, 0);
    g_assert_cmpint(symlink("/dev/zero", link), ==, 0);
    for (i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(ht_kernel_image_open(paths[i], &error));
        g_assert_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL);
        g_assert_nonnull(strstr(error->message, "a regular file"));
    }
    unlink(fifo);
    unlink(huge);
    unlink(link);
    rmdir(dir);
}

static const HtKernelImage *open_kernel(const char *path)
{
    g_autoptr(GError) error = NULL;
    HtKernelImage *image = ht_kernel_image_open(path, &error);

    g_assert_no_error(error);
    return image;
}

/* Promise: a distribution kernel's symbols, version and types are read. */
static void test_kernels(void)
{
    char **path;

    if (!*kernels) {
        g_test_skip("no kernel is given");
    }
    for (path = kernels; *path; path++) {
        const HtKernelImage *image = open_kernel(*path);
        const HtSymbols *s = ht_kernel_image_symbols(image);
        uint64_t addr, offset;
        uint32_t size;

        g_assert_true(ht_kernel_image_has_data_symbols(image));
        g_assert_true(g_str_has_prefix(ht_kernel_image_version(image),
                                       "Linux version "));
        g_assert_cmpuint(ht_symbols_count(s), >, 50000);
        g_assert_true(ht_symbols_address(s, "start_kernel", &addr));
        g_assert_cmpstr(ht_symbols_find(s, addr, &offset), ==, "start_kernel");
        g_assert_cmpuint(offset, ==, 0);
        g_assert_true(ht_symbols_address(s, "linux_banner", &addr));
        g_assert_nonnull(ht_kernel_image_bytes(image, addr, 32));
        g_assert_cmpmem(ht_kernel_image_bytes(image, addr, 14), 14,
                        "Linux version ", 14);
        g_assert_nonnull(ht_kernel_image_btf(image));
        g_assert_cmpint(ht_btf_offset(ht_kernel_image_btf(image),
                                      "task_struct", "tasks.next", &size,
                                      NULL), ==, 0);
        ht_kernel_image_unref((HtKernelImage *)image);
    }
}

#ifdef HT_HAVE_LIBBPF
/*
 * Compare the named members of a structure with libbpf's, except members of a
 * type without a size. Return the number of compared members.
 */
static unsigned compare_struct(const struct btf *oracle, const HtBtf *mine,
                               const struct btf_type *t, const char *name)
{
    const struct btf_member *m = btf_members(t);
    unsigned i, n = 0;
    uint32_t size;

    g_assert_cmpint(ht_btf_struct_size(mine, name, &size), ==, 0);
    g_assert_cmpuint(size, ==, t->size);
    for (i = 0; i < btf_vlen(t); i++) {
        const char *member = btf__name_by_offset(oracle, m[i].name_off);
        uint32_t bit = btf_member_bit_offset(t, i);
        uint32_t bits = btf_member_bitfield_size(t, i);
        int64_t bytes = btf__resolve_size(oracle, m[i].type);
        HtBtfField f;
        int ret;

        if (!*member) {
            continue;
        }
        ret = ht_btf_field(mine, name, member, &f);
        if (bytes < 0) {
            continue;
        }
        g_assert_cmpint(ret, ==, 0);
        g_assert_cmpuint(f.bits, ==, bits);
        g_assert_cmpuint(f.offset * 8 + f.bit, ==, bit);
        g_assert_cmpuint(f.size, ==, bytes);
        n++;
    }
    return n;
}

/*
 * Promise: offset, size and width of the named members of a distribution
 * kernel's named structures and unions are those that libbpf reads. Of several
 * types with the same name, the first is compared.
 */
static void test_oracle(void)
{
    char **path;

    if (!*kernels) {
        g_test_skip("no kernel is given");
    }
    for (path = kernels; *path; path++) {
        const HtKernelImage *image = open_kernel(*path);
        const HtBtf *mine = ht_kernel_image_btf(image);
        const HtSymbols *s = ht_kernel_image_symbols(image);
        g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
        uint64_t from, to;
        const void *raw;
        struct btf *oracle;
        unsigned i, members = 0;

        g_assert_true(ht_symbols_address(s, "__start_BTF", &from));
        g_assert_true(ht_symbols_address(s, "__stop_BTF", &to));
        raw = ht_kernel_image_bytes(image, from, to - from);
        oracle = btf__new(raw, to - from);
        g_assert_nonnull(oracle);
        for (i = 1; i < btf__type_cnt(oracle); i++) {
            const struct btf_type *t = btf__type_by_id(oracle, i);
            const char *name = btf__name_by_offset(oracle, t->name_off);

            if (btf_is_composite(t) && *name && g_hash_table_add(
                    seen, (gpointer)name)) {
                members += compare_struct(oracle, mine, t, name);
            }
        }
        g_test_message("%s: %u members", *path, members);
        g_assert_cmpuint(members, >, 20000);
        btf__free(oracle);
        ht_kernel_image_unref((HtKernelImage *)image);
    }
}
#endif

/* Return the kernels in the project's cache: the test guest's, and others. */
static char **cached_kernels(void)
{
    static const char *const patterns[] = { "guest/vmlinuz",
                                            "kernels/[0-9a-z]*.image/kernel" };
    const char *cache = g_getenv("HT_CACHE");
    g_autofree char *own = g_build_filename(g_get_user_cache_dir(),
                                            "hypertrace", NULL);
    static char *none[] = { NULL };
    static glob_t found;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(patterns); i++) {
        g_autofree char *pattern = g_build_filename(cache ? cache : own,
                                                    patterns[i], NULL);

        glob(pattern, i ? GLOB_APPEND : 0, NULL, &found);
    }
    return found.gl_pathc ? found.gl_pathv : none;
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    kernels = argc > 1 ? argv + 1 : cached_kernels();
    g_test_add_func("/images/formats", test_formats);
    g_test_add_func("/images/refused", test_refused);
    g_test_add_func("/images/files", test_files);
    g_test_add_func("/images/kernels", test_kernels);
#ifdef HT_HAVE_LIBBPF
    g_test_add_func("/images/oracle", test_oracle);
#endif
    return g_test_run();
}
