/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: decompress a kernel, in each format that Linux's build offers
 *
 * Each library is optional.  The output buffer grows with the decompressed
 * data; a wrong size in the input can enlarge it by one block at most.
 */
#include "hypertrace/base.h"
#include "unpack.h"
#ifdef HT_HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef HT_HAVE_LZMA
#include <lzma.h>
#endif
#ifdef HT_HAVE_BZIP2
#include <bzlib.h>
#endif
#ifdef HT_HAVE_ZSTD
#include <zstd.h>
#endif
#ifdef HT_HAVE_LZ4
#include <lz4.h>
#endif
#ifdef HT_HAVE_LZO
#include <lzo/lzo1x.h>
#endif

/*
 * Minimum free space in bytes after grow() has enlarged the buffer, if
 * Unpack.max permits it; maximum output in bytes of a call of zlib or libbz2
 */
#define GROW            (16u << 20)
/*
 * Maximum size in bytes of a compressed block (lz4), or of a block's
 * uncompressed content (lzop)
 */
#define BLOCK_MAX       (64u << 20)
#define LZMA_MEMORY     (UINT64_C(256) << 20)

typedef struct Unpack {
    const uint8_t *in;
    size_t in_size;
    uint8_t *out;
    size_t used;
    size_t size;                /* number of bytes allocated at @out */
    size_t max;
} Unpack;

/*
 * A function that decompresses a format; returns NULL or the reason of a
 * failure
 */
typedef const char *Reader(Unpack *u);

static const char *const too_large = "it is too large";
static const char *const damaged = "it is damaged";

/*
 * Make room for at least @least bytes in the output buffer; returns NULL or the
 * reason of a failure
 */
static const char *grow(Unpack *u, size_t least)
{
    size_t room = MAX(least, MIN(GROW + u->size / 2, u->max - u->used));

    if (least > u->max - u->used) {
        return too_large;
    }
    if (u->size - u->used < least) {
        u->size = u->used + room;
        u->out = g_realloc(u->out, u->size);
    }
    return NULL;
}

#ifdef HT_HAVE_ZLIB
static const char *read_gzip(Unpack *u)
{
    z_stream z = { .next_in = (Bytef *)u->in, .avail_in = u->in_size };
    const char *wrong = NULL;
    int ret = Z_OK;

    if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK) {
        return "zlib does not start";
    }
    while (ret == Z_OK && !(wrong = grow(u, 1))) {
        z.next_out = u->out + u->used;
        z.avail_out = MIN(u->size - u->used, GROW);
        ret = inflate(&z, Z_NO_FLUSH);
        u->used = z.next_out - u->out;
    }
    inflateEnd(&z);
    return wrong ?: ret == Z_STREAM_END ? NULL : damaged;
}
#endif

#ifdef HT_HAVE_LZMA
static const char *run_lzma(Unpack *u, lzma_stream *z, lzma_ret ret)
{
    const char *wrong = NULL;

    z->next_in = u->in;
    z->avail_in = u->in_size;
    while (ret == LZMA_OK && !(wrong = grow(u, 1))) {
        z->next_out = u->out + u->used;
        z->avail_out = u->size - u->used;
        ret = lzma_code(z, LZMA_RUN);
        u->used = z->next_out - u->out;
        if (ret == LZMA_OK && !z->avail_in && z->avail_out) {
            /* the compressed data is truncated */
            ret = LZMA_DATA_ERROR;
        }
    }
    lzma_end(z);
    return wrong ?: ret == LZMA_STREAM_END ? NULL :
           ret == LZMA_MEMLIMIT_ERROR ? "it needs too much memory" : damaged;
}

static const char *read_xz(Unpack *u)
{
    lzma_stream z = LZMA_STREAM_INIT;

    return run_lzma(u, &z, lzma_stream_decoder(&z, LZMA_MEMORY, 0));
}

static const char *read_lzma(Unpack *u)
{
    lzma_stream z = LZMA_STREAM_INIT;

    return run_lzma(u, &z, lzma_alone_decoder(&z, LZMA_MEMORY));
}
#endif

#ifdef HT_HAVE_BZIP2
static const char *read_bzip2(Unpack *u)
{
    bz_stream z = { .next_in = (char *)u->in, .avail_in = u->in_size };
    const char *wrong = NULL;
    int ret = BZ_OK;

    if (BZ2_bzDecompressInit(&z, 0, 0) != BZ_OK) {
        return "libbz2 does not start";
    }
    while (ret == BZ_OK && !(wrong = grow(u, 1))) {
        z.next_out = (char *)u->out + u->used;
        z.avail_out = MIN(u->size - u->used, GROW);
        ret = BZ2_bzDecompress(&z);
        u->used = (uint8_t *)z.next_out - u->out;
        if (ret == BZ_OK && !z.avail_in && z.avail_out) {
            ret = BZ_UNEXPECTED_EOF;
        }
    }
    BZ2_bzDecompressEnd(&z);
    return wrong ?: ret == BZ_STREAM_END ? NULL : damaged;
}
#endif

#ifdef HT_HAVE_ZSTD
static const char *read_zstd(Unpack *u)
{
    ZSTD_DCtx *z = ZSTD_createDCtx();
    ZSTD_inBuffer in = { .src = u->in, .size = u->in_size };
    const char *wrong = NULL;
    size_t ret = 1, before;

    while (ret && !ZSTD_isError(ret) && !(wrong = grow(u, 1))) {
        ZSTD_outBuffer out = { .dst = u->out, .size = u->size,
                               .pos = u->used };

        before = in.pos;
        ret = ZSTD_decompressStream(z, &out, &in);
        if (ret && out.pos == u->used && in.pos == before) {
            /* the compressed data is truncated */
            wrong = damaged;
            break;
        }
        u->used = out.pos;
    }
    ZSTD_freeDCtx(z);
    return wrong ?: ZSTD_isError(ret) ? damaged : NULL;
}
#endif

#ifdef HT_HAVE_LZ4
/*
 * Read the legacy format: a signature, then blocks, each after its compressed
 * size in 4 bytes
 */
static const char *read_lz4(Unpack *u)
{
    size_t at = 4;

    while (u->in_size - at > 4) {
        uint32_t bytes = ht_get_le32(u->in + at);
        size_t room = 8u << 20;
        const char *wrong;
        int n;

        /* Other bytes may follow the last block: they end the data. */
        if (bytes > u->in_size - at - 4 || !bytes || bytes > BLOCK_MAX) {
            break;
        }
        wrong = grow(u, MIN(room, u->max - u->used));
        if (wrong) {
            return wrong;
        }
        n = LZ4_decompress_safe((const char *)u->in + at + 4,
                                (char *)u->out + u->used, bytes,
                                MIN(room, u->size - u->used));
        if (n < 0) {
            return damaged;
        }
        u->used += n;
        at += 4 + bytes;
    }
    return u->used ? NULL : damaged;
}
#endif

#ifdef HT_HAVE_LZO
static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

enum {
    LZOP_ADLER32_D = 0x1, LZOP_ADLER32_C = 0x2, LZOP_EXTRA = 0x40,
    LZOP_CRC32_D = 0x100, LZOP_CRC32_C = 0x200, LZOP_FILTER = 0x800,
};

/* Parse lzop's header; returns the offset after it, or 0 */
static size_t lzop_header(const Unpack *u, uint32_t *flags)
{
    /* offset of the first byte after the signature */
    size_t at = 9;
    unsigned version, name;

    if (u->in_size < 64) {
        return 0;
    }
    version = u->in[at] << 8 | u->in[at + 1];
    /*
     * skip the versions of lzop and of its library, and the method; from 0x940
     * on, also the version of lzop that is needed to unpack, and the level
     */
    at += version >= 0x940 ? 8 : 5;
    *flags = be32(u->in + at);
    at += 4 + (*flags & LZOP_FILTER ? 4 : 0);
    /* skip the file's mode and times */
    at += 8 + (version >= 0x940 ? 4 : 0);
    name = u->in[at];
    at += 1 + name + 4;
    return at < u->in_size && !(*flags & LZOP_EXTRA) ? at : 0;
}

static const char *read_lzo(Unpack *u)
{
    uint32_t flags;
    size_t at = lzop_header(u, &flags);

    if (!at) {
        return damaged;
    }
    while (u->in_size - at >= 4) {
        uint32_t to = be32(u->in + at), from;
        const char *wrong;
        size_t sums;
        lzo_uint n;

        if (!to) {
            return NULL;
        }
        if (u->in_size - at < 8) {
            break;
        }
        from = be32(u->in + at + 4);
        sums = (flags & LZOP_ADLER32_D ? 4 : 0) +
               (flags & LZOP_CRC32_D ? 4 : 0);
        if (from < to) {
            sums += (flags & LZOP_ADLER32_C ? 4 : 0) +
                    (flags & LZOP_CRC32_C ? 4 : 0);
        }
        if (from > to || to > BLOCK_MAX || sums > u->in_size - at - 8 ||
            from > u->in_size - at - 8 - sums) {
            return damaged;
        }
        at += 8 + sums;
        wrong = grow(u, to);
        if (wrong) {
            return wrong;
        }
        n = to;
        if (from == to) {
            memcpy(u->out + u->used, u->in + at, to);
        } else if (lzo1x_decompress_safe(u->in + at, from, u->out + u->used,
                                         &n, NULL) != LZO_E_OK || n != to) {
            return damaged;
        }
        u->used += to;
        at += from;
    }
    /* the end mark of the compressed data is missing */
    return damaged;
}
#endif

typedef struct Format {
    const char *name;
    /* name of the library that decompresses the format, for messages */
    const char *library;
    /* NULL if hypertrace was built without the library */
    Reader *read;
    uint8_t len;
    uint8_t signature[9];
} Format;

#ifndef HT_HAVE_ZLIB
#define read_gzip NULL
#endif
#ifndef HT_HAVE_LZMA
#define read_xz NULL
#define read_lzma NULL
#endif
#ifndef HT_HAVE_BZIP2
#define read_bzip2 NULL
#endif
#ifndef HT_HAVE_ZSTD
#define read_zstd NULL
#endif
#ifndef HT_HAVE_LZ4
#define read_lz4 NULL
#endif
#ifndef HT_HAVE_LZO
#define read_lzo NULL
#endif

static const Format formats[] = {
    { "gzip", "zlib", read_gzip, 3, { 0x1f, 0x8b, 8 } },
    { "xz", "liblzma", read_xz, 6, { 0xfd, '7', 'z', 'X', 'Z', 0 } },
    { "bzip2", "libbz2", read_bzip2, 3, { 'B', 'Z', 'h' } },
    { "zstd", "libzstd", read_zstd, 4, { 0x28, 0xb5, 0x2f, 0xfd } },
    { "lz4", "liblz4", read_lz4, 4, { 0x02, 0x21, 0x4c, 0x18 } },
    { "lzo", "liblzo2", read_lzo, 9,
      { 0x89, 'L', 'Z', 'O', 0, '\r', '\n', 0x1a, '\n' } },
    { "lzma", "liblzma", read_lzma, 3, { 0x5d, 0, 0 } },
};

static const Format *format_of(const void *data, size_t size)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(formats); i++) {
        if (size > formats[i].len &&
            !memcmp(data, formats[i].signature, formats[i].len)) {
            return &formats[i];
        }
    }
    return NULL;
}

const char *ht_unpack_format(const void *data, size_t size)
{
    const Format *f = format_of(data, size);

    return f ? f->name : NULL;
}

GBytes *ht_unpack(const void *data, size_t size, size_t max, GError **error)
{
    Unpack u = { .in = data, .in_size = size, .max = max };
    const Format *f = format_of(data, size);
    const char *wrong;

    if (!f) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "the kernel is compressed in an unknown format");
        return NULL;
    }
    if (!f->read) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOSYS,
                    "the kernel is compressed with %s, and this program was "
                    "built without %s; install the library's development "
                    "files and build it again", f->name, f->library);
        return NULL;
    }
    wrong = size <= UINT_MAX ? f->read(&u) : too_large;
    if (wrong) {
        g_free(u.out);
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "the kernel, compressed with %s, cannot be unpacked: %s "
                    "(at most %zu MiB are accepted)", f->name, wrong,
                    max >> 20);
        return NULL;
    }
    return g_bytes_new_take(g_realloc(u.out, MAX(u.used, 1)), u.used);
}
