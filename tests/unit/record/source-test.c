/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: the memory of a process or of a file that is read as a
 * guest's RAM, and files that are refused
 *
 * The process whose memory is read is this one, or a child of it.
 */
#include "hypertrace/base.h"
#include <elf.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "memory/source.h"

#define MIB     (UINT64_C(1) << 20)
#define SIZE    (16 * MIB)

static int make_file(uint64_t size)
{
    int fd = memfd_create("guest", MFD_CLOEXEC);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(ftruncate(fd, size), ==, 0);
    return fd;
}

/*
 * Reserve address space for a test's mapping of SIZE bytes. The address space
 * after it stays reserved and inaccessible, so that no later mapping is joined
 * with this one.
 *
 * Returns: an address that is a multiple of 2 MiB
 */
static uint8_t *make_room(void)
{
    uint8_t *p = mmap(NULL, SIZE + 4 * MIB, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    g_assert_true(p != MAP_FAILED);
    return (uint8_t *)HT_ROUND_UP((uintptr_t)p, 2 * MIB);
}

static HtSource *read_self(const GPtrArray *others)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HtProcess) process = ht_process_new(getpid(), &error);
    HtSource *s;

    g_assert_no_error(error);
    s = ht_source_process(process, others, &error);
    g_assert_no_error(error);
    return s;
}

static const HtSourceRange *range_at(const HtSource *s, const void *p)
{
    const HtSourceRange *found = NULL;
    unsigned i;

    for (i = 0; i < s->ranges->len; i++) {
        const HtSourceRange *r = &g_array_index(s->ranges, HtSourceRange, i);

        if ((uintptr_t)p >= r->from && (uintptr_t)p < r->from + r->size) {
            g_assert_null(found);
            found = r;
        }
    }
    return found;
}

/*
 * The offset of a mapping in its file, not its address in the process,
 * determines the alignment of its range in the source (HtSourceRange.at).
 */
static void test_file_place(void)
{
    uint8_t *room = make_room(), *p = room + 4096;
    int fd = make_file(SIZE);
    g_autoptr(HtSource) s = NULL;
    const HtSourceRange *r;
    char mark[6];

    g_assert_true(mmap(p, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                       fd, 0) == p);
    memcpy(p + 2 * MIB, "mark", 5);
    s = read_self(NULL);
    r = range_at(s, p);
    g_assert_nonnull(r);
    g_assert_cmpuint(r->size, ==, SIZE);
    g_assert_cmpuint(r->at % (2 * MIB), ==, 0);
    g_assert_cmpint(s->mem.read(s->mem.opaque, r->at + 2 * MIB, mark, 5), ==,
                    0);
    g_assert_cmpstr(mark, ==, "mark");
    munmap(p, SIZE);
    close(fd);
}

/*
 * A read of a page beyond the end of the mapped file fails with -EIO, and not
 * with -ESRCH, which would end the search of all memory.
 */
static void test_short_read(void)
{
    uint8_t *room = make_room(), *buf = g_malloc(2 * MIB);
    int fd = make_file(SIZE);
    g_autoptr(HtSource) s = NULL;
    const HtSourceRange *r;

    g_assert_true(mmap(room, SIZE, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_FIXED, fd, 0) == room);
    g_assert_cmpint(ftruncate(fd, 9 * MIB), ==, 0);
    s = read_self(NULL);
    r = range_at(s, room);
    g_assert_nonnull(r);
    g_assert_cmpint(s->mem.read(s->mem.opaque, r->at + 8 * MIB, buf, MIB), ==,
                    0);
    g_assert_cmpint(s->mem.read(s->mem.opaque, r->at + 8 * MIB, buf, 2 * MIB),
                    ==, -EIO);
    munmap(room, SIZE);
    close(fd);
    g_free(buf);
}

static void test_anonymous_place(void)
{
    uint8_t *room = make_room(), *p = room + 4096;
    g_autoptr(HtSource) s = NULL;
    const HtSourceRange *r;

    g_assert_cmpint(mprotect(p, SIZE, PROT_READ | PROT_WRITE), ==, 0);
    s = read_self(NULL);
    r = range_at(s, p);
    g_assert_nonnull(r);
    g_assert_cmpuint(r->at % (2 * MIB), ==, 4096);
    munmap(p, SIZE);
}

/*
 * ht_source_same() is true for two sources of one process only if they have the
 * same ranges of memory. A recorder then continues its searches.
 */
static void test_same(void)
{
    uint8_t *p = make_room(), *other = make_room();
    g_autoptr(HtSource) before = NULL, same = NULL, more = NULL, moved = NULL;

    g_assert_cmpint(mprotect(p, SIZE, PROT_READ | PROT_WRITE), ==, 0);
    g_assert_cmpint(mprotect(other, SIZE, PROT_READ | PROT_WRITE), ==, 0);
    before = read_self(NULL);
    memset(p, 1, SIZE);
    same = read_self(NULL);
    g_assert_true(ht_source_same(before, same));
    g_assert_cmpint(munmap(p + SIZE - 2 * MIB, 2 * MIB), ==, 0);
    moved = read_self(NULL);
    g_assert_false(ht_source_same(before, moved));
    munmap(p, SIZE);
    more = read_self(NULL);
    g_assert_false(ht_source_same(moved, more));
    g_assert_false(ht_source_same(more, moved));
    munmap(other, SIZE);
}

/*
 * Return whether a piece of the source begins at @at. Assert that this piece
 * ends with the range @r.
 */
static bool is_begin(const HtSource *s, const HtSourceRange *r, uint64_t at)
{
    uint64_t offset, size, phys;
    unsigned i;

    for (i = 0; s->mem.piece(s->mem.opaque, i, &offset, &size, &phys); i++) {
        g_assert_cmphex(phys, ==, HT_FT_PHYS_UNKNOWN);
        if (offset == at) {
            g_assert_cmpuint(size, ==, r->at + r->size - at);
            return true;
        }
    }
    return false;
}

/*
 * If madvise() splits a mapping, the source joins the parts to one range. In
 * anonymous memory, the second part also begins a piece, because a guest's RAM
 * may begin there.
 */
static void test_joined(void)
{
    uint8_t *p = make_room();
    int fd = make_file(SIZE);
    unsigned shared;

    for (shared = 0; shared < 2; shared++) {
        g_autoptr(HtSource) s = NULL;
        const HtSourceRange *r;

        g_assert_true(mmap(p, SIZE, PROT_READ | PROT_WRITE, MAP_FIXED |
                           (shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS),
                           shared ? fd : -1, 0) == p);
        g_assert_cmpint(madvise(p, 4 * MIB, MADV_DONTFORK), ==, 0);
        s = read_self(NULL);
        r = range_at(s, p + 4 * MIB);
        g_assert_nonnull(r);
        g_assert_cmpuint(r->from, ==, (uintptr_t)p);
        g_assert_cmpuint(r->size, ==, SIZE);
        g_assert_cmpint(is_begin(s, r, r->at + 4 * MIB), ==, !shared);
        /*
         * Let the first 2 MiB map other pages of the file.  The range of the
         * rest then begins after them.
         */
        if (shared) {
            g_assert_true(mmap(p, 2 * MIB, PROT_READ | PROT_WRITE,
                               MAP_FIXED | MAP_SHARED, fd, 8 * MIB) == p);
            ht_source_free(s);
            s = read_self(NULL);
            r = range_at(s, p + 4 * MIB);
            g_assert_nonnull(r);
            g_assert_cmpuint(r->from, ==, (uintptr_t)p + 2 * MIB);
            g_assert_cmpuint(r->at % (2 * MIB), ==, 0);
        }
    }
    munmap(p, SIZE);
    close(fd);
}

/*
 * Two nodes of a guest's RAM, one in anonymous memory and one in a file, form
 * one memory, which can be read across their border, even if other memory lies
 * directly before the first node. While the file is only partly mapped,
 * ht_source_process_nodes() fails.
 */
static void test_nodes(void)
{
    uint64_t low = SIZE - 4 * MIB;
    uint8_t *p = make_room(), *q = make_room();
    g_autoptr(GError) error = NULL;
    g_autoptr(HtProcess) process = ht_process_new(getpid(), &error);
    g_autoptr(HtSource) top = ht_source_file(make_file(SIZE), "top", &error);
    g_autoptr(HtSource) early = NULL, s = NULL;
    char both[8];

    g_assert_no_error(error);
    g_assert_cmpint(mprotect(p, SIZE, PROT_READ | PROT_WRITE), ==, 0);
    g_assert_cmpint(madvise(p + 4 * MIB, low, MADV_DONTFORK), ==, 0);
    g_assert_true(mmap(q, SIZE / 2, PROT_READ | PROT_WRITE,
                       MAP_FIXED | MAP_SHARED, top->fd, 0) == q);
    early = ht_source_process_nodes(process, low, top, &error);
    g_assert_null(early);
    g_assert_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
    g_clear_error(&error);
    g_assert_true(mmap(q, SIZE, PROT_READ | PROT_WRITE,
                       MAP_FIXED | MAP_SHARED, top->fd, 0) == q);
    memcpy(p + SIZE - 4, "node", 4);
    memcpy(q, "top", 4);
    s = ht_source_process_nodes(process, low, top, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(s->mem.size, ==, low + SIZE);
    g_assert_null(s->mem.piece);
    g_assert_cmpint(s->mem.read(s->mem.opaque, low - 4, both, 8), ==, 0);
    g_assert_cmpstr(both, ==, "nodetop");
    g_assert_cmpint(s->mem.read(s->mem.opaque, low + SIZE - 4, both, 8), ==,
                    -ENXIO);
    munmap(p, SIZE);
    munmap(q, SIZE);
}

/*
 * ht_source_process() leaves out the mappings of a file that one of @others
 * reads.
 */
static void test_others(void)
{
    uint8_t *p = make_room();
    int fd = make_file(SIZE);
    g_autoptr(GPtrArray) others = g_ptr_array_new();
    g_autoptr(HtSource) file = NULL, all = NULL, rest = NULL;
    /* memory that belongs to no file */
    void *anonymous = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    g_assert_true(mmap(p, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                       fd, 0) == p);
    file = ht_source_file(fd, "guest", NULL);
    g_assert_nonnull(file);
    g_ptr_array_add(others, NULL);
    g_ptr_array_add(others, file);
    all = read_self(NULL);
    rest = read_self(others);
    g_assert_nonnull(range_at(all, p));
    g_assert_null(range_at(rest, p));
    g_assert_nonnull(range_at(rest, anonymous));
    munmap(p, SIZE);
    munmap(anonymous, SIZE);
}

static void refused(int fd, const char *message)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(ht_source_file(fd, "it", &error));
    g_assert_nonnull(error);
    g_assert_nonnull(strstr(error->message, message));
}

static void test_no_memory(void)
{
    refused(make_file(0), "is empty");
    refused(open("/tmp", O_RDONLY), "neither a file");
}

/* A named pipe is refused; opening it does not wait for a writer. */
static void test_pipe(void)
{
    g_autofree char *dir = g_dir_make_tmp("ht-source-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "pipe", NULL);
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(mkfifo(path, 0600), ==, 0);
    g_assert_null(ht_source_open(path, &error));
    g_assert_nonnull(strstr(error->message, "neither a file"));
    g_assert_cmpint(unlink(path), ==, 0);
    g_assert_cmpint(rmdir(dir), ==, 0);
}

static int make_core(uint64_t offset, uint64_t bytes, uint64_t file_size)
{
    Elf64_Ehdr h = {
        .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
                     ELFDATA2LSB },
        .e_type = ht_le16(ET_CORE),
        .e_phoff = ht_le64(sizeof(h)),
        .e_phentsize = ht_le16(sizeof(Elf64_Phdr)),
        .e_phnum = ht_le16(1),
    };
    Elf64_Phdr p = {
        .p_type = ht_le32(PT_LOAD),
        .p_offset = ht_le64(offset),
        .p_filesz = ht_le64(bytes),
        .p_paddr = ht_le64(MIB),
    };
    int fd = make_file(file_size);

    g_assert_cmpint(pwrite(fd, &h, sizeof(h), 0), ==, sizeof(h));
    g_assert_cmpint(pwrite(fd, &p, sizeof(p), sizeof(h)), ==, sizeof(p));
    return fd;
}

static void test_core(void)
{
    g_autoptr(HtSource) s = ht_source_file(make_core(4096, MIB, 4096 + MIB),
                                           "core", NULL);

    g_assert_nonnull(s);
    g_assert_cmpuint(s->mem.size, ==, 2 * MIB);
    refused(make_core(4096, MIB, 4095 + MIB), "truncated");
    refused(make_core(4096, UINT64_C(1) << 52, MIB), "truncated");
    refused(make_core(UINT64_MAX - 4095, 4096, MIB), "truncated");
}

/* A process that ended is detected even before its parent waits for it. */
static void test_process(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HtProcess) self = ht_process_new(getpid(), &error), p = NULL;
    int go[2];
    pid_t pid;

    g_assert_no_error(error);
    g_assert_true(ht_process_is_ours(self));
    g_assert_cmpint(pipe(go), ==, 0);
    pid = fork();
    if (pid == 0) {
        char c;

        close(go[1]);
        _exit(read(go[0], &c, 1));
    }
    p = ht_process_new(pid, &error);
    g_assert_no_error(error);
    g_assert_false(ht_process_ended(p));
    close(go[0]);
    close(go[1]);
    while (!ht_process_ended(p)) {
        g_usleep(1000);
    }
    g_assert_null(ht_process_new(pid, &error));
    g_clear_error(&error);
    g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
    g_assert_null(ht_process_read(p, "maps", NULL, &error));
    g_assert_nonnull(error);
}

/*
 * Promise: a search through the memory of a process that has ended stops at
 * once, with or without its page map, and does not read each page.
 */
static void test_ended(void)
{
    unsigned with;

    for (with = 0; with < 2; with++) {
        g_autoptr(HtSource) s = NULL;
        g_autoptr(HtProcess) p = NULL;
        g_autoptr(GError) error = NULL;
        uint64_t at = 0, next, searched = 0;
        int ready[2];
        pid_t pid;
        char c;

        g_assert_cmpint(pipe(ready), ==, 0);
        pid = fork();
        if (pid == 0) {
            char *ram = mmap(NULL, UINT64_C(1) << 33, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                             0);

            ram[0] = 1;
            g_assert_cmpint(write(ready[1], ram, 1), ==, 1);
            pause();
        }
        g_assert_cmpint(read(ready[0], &c, 1), ==, 1);
        close(ready[0]);
        close(ready[1]);
        p = ht_process_new(pid, &error);
        g_assert_no_error(error);
        s = ht_source_process(p, NULL, &error);
        g_assert_no_error(error);
        if (!with) {
            close(s->pagemap);
            s->pagemap = -1;
        }
        g_assert_true(s->mem.next(s, 0, &next));
        g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
        g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
        while (s->mem.next(s, at, &next) && ++searched < 100) {
            g_assert_cmpint(s->mem.read(s, next, &c, 1), ==, -ESRCH);
            at = next + 4096;
        }
        g_assert_cmpuint(searched, <=, 1);
    }
}

static void *start_child(void *pid)
{
    int forever[2];

    g_assert_cmpint(pipe(forever), ==, 0);
    *(pid_t *)pid = fork();
    if (*(pid_t *)pid == 0) {
        char c;

        close(forever[1]);
        _exit(read(forever[0], &c, 1));
    }
    close(forever[0]);
    return GINT_TO_POINTER(forever[1]);
}

static void *start_child_and_stay(void *data)
{
    void **job = data;
    void *fd = start_child(job[0]);

    g_assert_cmpint(write(GPOINTER_TO_INT(job[1]), "", 1), ==, 1);
    g_assert_cmpint(read(GPOINTER_TO_INT(job[2]), &(char) { 0 }, 1), ==, 0);
    return fd;
}

static bool is_child(pid_t pid)
{
    g_autoptr(GArray) all = ht_process_children();
    unsigned i;

    for (i = 0; i < all->len; i++) {
        if (g_array_index(all, pid_t, i) == pid) {
            return true;
        }
    }
    return false;
}

/*
 * Promise: ht_process_children() finds children that any thread of this process
 * started, not only those of the main thread.
 */
static void test_children(void)
{
    int ready[2], stay[2];
    pid_t main_child, thread_child;
    void *job[3];
    GThread *thread;
    char c;

    g_assert_cmpint(pipe(ready), ==, 0);
    g_assert_cmpint(pipe2(stay, O_CLOEXEC), ==, 0);
    start_child(&main_child);
    job[0] = &thread_child;
    job[1] = GINT_TO_POINTER(ready[1]);
    job[2] = GINT_TO_POINTER(stay[0]);
    thread = g_thread_new("starter", start_child_and_stay, job);
    g_assert_cmpint(read(ready[0], &c, 1), ==, 1);
    g_assert_true(is_child(main_child));
    g_assert_true(is_child(thread_child));
    kill(main_child, SIGKILL);
    kill(thread_child, SIGKILL);
    g_assert_cmpint(waitpid(main_child, NULL, 0), ==, main_child);
    g_assert_cmpint(waitpid(thread_child, NULL, 0), ==, thread_child);
    close(stay[1]);
    g_thread_join(thread);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/source/file-place", test_file_place);
    g_test_add_func("/source/anonymous-place", test_anonymous_place);
    g_test_add_func("/source/short-read", test_short_read);
    g_test_add_func("/source/same", test_same);
    g_test_add_func("/source/joined", test_joined);
    g_test_add_func("/source/nodes", test_nodes);
    g_test_add_func("/source/others", test_others);
    g_test_add_func("/source/no-memory", test_no_memory);
    g_test_add_func("/source/pipe", test_pipe);
    g_test_add_func("/source/core", test_core);
    g_test_add_func("/source/process", test_process);
    g_test_add_func("/source/ended", test_ended);
    g_test_add_func("/source/children", test_children);
    return g_test_run();
}
