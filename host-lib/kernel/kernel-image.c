/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find the symbols, types and version of a kernel image
 */
#include "hypertrace/base.h"
#include <elf.h>
#include "hypertrace/kernel-image.h"
#include "image-elf.h"

#define BANNER          "Linux version "
#define BANNER_MAX      512u
/* Size in bytes of the header of an arm64 image, which begins at _text */
#define HEADER_BYTES    64u
/* Maximum number of BTF headers tried if no section or symbol places the BTF */
#define BTF_TRIES       16u

struct HtKernelImage {
    gint references;
    HtMachine machine;
    GBytes *bytes;
    const uint8_t *p;
    size_t size;
    HtKernelSegment segments[HT_ELF_SEGMENTS_MAX];
    unsigned n_segments;
    HtSymbols *symbols;
    HtBtf *btf;
    char *version;
    char *release;
};

HtKernelImage *ht_kernel_image_ref(HtKernelImage *image)
{
    g_atomic_int_inc(&image->references);
    return image;
}

void ht_kernel_image_unref(HtKernelImage *image)
{
    if (image && g_atomic_int_dec_and_test(&image->references)) {
        g_bytes_unref(image->bytes);
        ht_symbols_free(image->symbols);
        ht_btf_free(image->btf);
        g_free(image->version);
        g_free(image->release);
        g_free(image);
    }
}

const void *ht_kernel_image_bytes(const HtKernelImage *image, uint64_t addr,
                                  size_t len)
{
    unsigned i;

    for (i = 0; i < image->n_segments; i++) {
        const HtKernelSegment *s = &image->segments[i];

        if (addr >= s->addr && addr - s->addr < s->size &&
            len <= s->size - (addr - s->addr)) {
            return image->p + s->offset + (addr - s->addr);
        }
    }
    return NULL;
}

/*
 * Return the character of a version that stands for a byte of the kernel's
 * banner.  The banner is not trusted and is printed on terminals: keep
 * printable ASCII only.
 */
static char version_char(char c)
{
    return g_ascii_isprint(c) ? c : '?';
}

static bool find_version(HtKernelImage *image, GError **error)
{
    const char *text = NULL, *end;
    size_t left = 0;
    uint64_t addr;
    char *p;

    if (ht_symbols_address(image->symbols, "linux_banner", &addr)) {
        text = ht_kernel_image_bytes(image, addr, BANNER_MAX);
        left = BANNER_MAX;
    }
    if (!text || memcmp(text, BANNER, strlen(BANNER))) {
        text = memmem(image->p, image->size, BANNER, strlen(BANNER));
        left = text ? MIN(image->size - ((const uint8_t *)text - image->p),
                          BANNER_MAX) : 0;
    }
    end = text ? memchr(text, '\n', left) : NULL;
    if (!end) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "the kernel has no line \"" BANNER "...\"");
        return false;
    }
    image->version = g_strndup(text, end - text);
    for (p = image->version; *p; p++) {
        *p = version_char(*p);
    }
    text = image->version + strlen(BANNER);
    image->release = g_strndup(text, strcspn(text, " "));
    return true;
}

/*
 * Find BTF by the section .BTF, or the symbols __start_BTF and __stop_BTF, or
 * BTF's header
 */
static HtBtf *find_btf(const HtKernelImage *image)
{
    static const uint8_t header[] = { 0x9f, 0xeb, 1, 0, 24, 0, 0, 0,
                                      0, 0, 0, 0 };
    const uint8_t *p = image->p, *end = p + image->size;
    uint64_t from, to, offset, bytes;
    unsigned i;

    if (ht_elf_section(p, image->size, ".BTF", &offset, &bytes)) {
        return ht_btf_parse(p + offset, bytes, NULL);
    }
    if (ht_symbols_address(image->symbols, "__start_BTF", &from) &&
        ht_symbols_address(image->symbols, "__stop_BTF", &to) && to > from) {
        const void *at = ht_kernel_image_bytes(image, from, to - from);

        return at ? ht_btf_parse(at, to - from, NULL) : NULL;
    }
    for (i = 0; i < BTF_TRIES &&
         (p = memmem(p, end - p, header, sizeof(header))); i++, p++) {
        HtBtf *btf;

        if (end - p < 24) {
            break;
        }
        bytes = 24 + (uint64_t)ht_get_le32(p + 16) + ht_get_le32(p + 20);
        btf = bytes <= (uint64_t)(end - p) ? ht_btf_parse(p, bytes, NULL) :
              NULL;
        if (btf) {
            return btf;
        }
    }
    return NULL;
}

static HtKernelImage *image_new(GBytes *bytes, HtMachine machine)
{
    HtKernelImage *image = g_new0(HtKernelImage, 1);

    image->references = 1;
    image->machine = machine;
    image->bytes = g_bytes_ref(bytes);
    image->p = g_bytes_get_data(bytes, &image->size);
    return image;
}

static HtKernelImage *complete(HtKernelImage *image, GError **error)
{
    uint64_t text;

    image->symbols = ht_kallsyms_decode(image->p, image->size,
                                        image->segments, image->n_segments,
                                        &text, error);
    if (!image->symbols) {
        ht_kernel_image_unref(image);
        return NULL;
    }
    if (!image->segments[0].addr) {
        image->segments[0].addr = text;
    }
    if (!find_version(image, error)) {
        ht_kernel_image_unref(image);
        return NULL;
    }
    image->btf = find_btf(image);
    return image;
}

static HtKernelImage *from_kernel(GBytes *kernel, GError **error)
{
    size_t size;
    const void *p = g_bytes_get_data(kernel, &size);
    unsigned machine = ht_elf_machine(p, size);
    HtKernelImage *image;

    if (!machine) {
        /*
         * An arm64 Image begins at _text.  It has no field for the address:
         * ht_kallsyms_decode() determines it.
         */
        image = image_new(kernel, HT_MACHINE_AARCH64);
        image->segments[0] = (HtKernelSegment) { .size = size };
        image->n_segments = 1;
        return complete(image, error);
    }
    image = image_new(kernel, machine == EM_X86_64 ? HT_MACHINE_X86_64 :
                      machine == EM_AARCH64 ? HT_MACHINE_AARCH64 :
                      HT_MACHINE_UNKNOWN);
    image->n_segments = ht_elf_segments(p, size, image->segments);
    if (image->machine == HT_MACHINE_UNKNOWN || !image->n_segments) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "it is no Linux kernel for x86_64 or aarch64");
        ht_kernel_image_unref(image);
        return NULL;
    }
    return complete(image, error);
}

HtKernelImage *ht_kernel_image_parse(const void *data, size_t size,
                                     GError **error)
{
    g_autoptr(GBytes) kernel = ht_image_unpack(data, size, error);

    return kernel ? from_kernel(kernel, error) : NULL;
}

HtKernelImage *ht_kernel_image_open(const char *path, GError **error)
{
    g_autofree char *data = NULL;
    HtKernelImage *image;
    size_t size;

    if (!ht_image_load(path, &data, &size, error)) {
        return NULL;
    }
    image = ht_kernel_image_parse(data, size, error);
    if (!image) {
        g_prefix_error(error, "%s: ", path);
    }
    return image;
}

HtKernelImage *ht_kernel_image_from_memory(GBytes *bytes, HtMachine machine,
                                           uint64_t text, GError **error)
{
    HtKernelImage *image = image_new(bytes, machine);

    image->segments[0] = (HtKernelSegment) {
        .addr = text, .size = image->size,
    };
    image->n_segments = 1;
    return complete(image, error);
}

HtMachine ht_kernel_image_machine(const HtKernelImage *image)
{
    return image->machine;
}

const char *ht_kernel_image_version(const HtKernelImage *image)
{
    return image->version;
}

bool ht_kernel_image_has_banner(const HtKernelImage *image, const char *banner,
                                size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        /* also at the end of the version: version_char() never returns NUL */
        if (image->version[i] != version_char(banner[i])) {
            return false;
        }
    }
    return true;
}

const char *ht_kernel_image_release(const HtKernelImage *image)
{
    return image->release;
}

const HtSymbols *ht_kernel_image_symbols(const HtKernelImage *image)
{
    return image->symbols;
}

const HtBtf *ht_kernel_image_btf(const HtKernelImage *image)
{
    return image->btf;
}

bool ht_kernel_image_has_data_symbols(const HtKernelImage *image)
{
    uint64_t addr;

    return ht_symbols_address(image->symbols, "init_task", &addr);
}

void ht_kernel_image_shrink(HtKernelImage *image)
{
    HtKernelSegment header = { .size = HEADER_BYTES };
    const void *p = ht_symbols_address(image->symbols, "_text",
                                       &header.addr) ?
                    ht_kernel_image_bytes(image, header.addr, HEADER_BYTES) :
                    NULL;
    GBytes *bytes = g_bytes_new(p, p ? HEADER_BYTES : 0);

    g_bytes_unref(image->bytes);
    image->bytes = bytes;
    image->p = g_bytes_get_data(bytes, &image->size);
    image->segments[0] = header;
    image->n_segments = p ? 1 : 0;
}
