/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace domain: prepare a domain of libvirt for recordings
 *
 * virsh reads the domain and, with --apply or --remove, defines it again. With
 * --apply, hypertrace adds an element of its own to the domain's metadata. This
 * element notes the changes, so that --remove can undo them.
 */
#include <getopt.h>
#include <glib/gstdio.h>
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/wrong-option.h"
#include "kernel/kernel-words.h"
#include "record/options.h"
#include "record/record.h"

#define NAMESPACE       "urn:hypertrace:domain"
#define PREFIX          "hypertrace"
#define MIB             (UINT64_C(1) << 20)

/**
 * struct Domain - a domain and the changes to it
 * @name: its name, as the user gave it
 * @uri: --connect, or NULL
 * @programs: bytes of memory for events of programs, or 0
 * @doc: its definition
 * @root: the element <domain>
 * @undo: hypertrace's element in its metadata, or NULL
 * @shown: text of the added and changed elements
 */
typedef struct Domain {
    const char *name;
    const char *uri;
    uint64_t programs;
    xmlDocPtr doc;
    xmlNodePtr root;
    xmlNodePtr undo;
    GString *shown;
} Domain;

static const xmlChar *X(const char *text)
{
    return (const xmlChar *)text;
}

static char *virsh(const Domain *d, const char *const *args, GError **error)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_autofree char *out = NULL, *err = NULL;
    int status;

    g_ptr_array_add(argv, (char *)"virsh");
    g_ptr_array_add(argv, (char *)"-q");
    if (d->uri) {
        g_ptr_array_add(argv, (char *)"-c");
        g_ptr_array_add(argv, (char *)d->uri);
    }
    for (; *args; args++) {
        g_ptr_array_add(argv, (char *)*args);
    }
    g_ptr_array_add(argv, NULL);
    if (!g_spawn_sync(NULL, (char **)argv->pdata, NULL, G_SPAWN_SEARCH_PATH,
                      NULL, NULL, &out, &err, &status, error)) {
        g_prefix_error(error, "install libvirt-clients: ");
        return NULL;
    }
    if (!g_spawn_check_wait_status(status, NULL)) {
        g_strstrip(err);
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "virsh: %s",
                    g_str_has_prefix(err, "error: ") ? err + 7 : err);
        return NULL;
    }
    return g_steal_pointer(&out);
}

/*
 * Read the definition of the domain.  @secrets: include passwords; defining the
 * domain again without them would remove them.
 */
static bool read_domain(Domain *d, bool secrets, GError **error)
{
    const char *args[] = { "dumpxml", "--inactive", d->name,
                           secrets ? "--security-info" : NULL, NULL };
    g_autofree char *text = virsh(d, args, error);

    if (!text) {
        return false;
    }
    d->doc = xmlReadMemory(text, strlen(text), "domain.xml", NULL,
                           XML_PARSE_NONET | XML_PARSE_NOERROR |
                           XML_PARSE_NOWARNING);
    d->root = d->doc ? xmlDocGetRootElement(d->doc) : NULL;
    if (!d->root || strcmp((const char *)d->root->name, "domain")) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "virsh dumpxml has printed no domain");
        return false;
    }
    return true;
}

static bool define_domain(const Domain *d, GError **error)
{
    const char *args[] = { "define", NULL, NULL };
    g_autofree char *path = NULL, *out = NULL;
    xmlChar *text;
    int fd, size;
    bool ok;

    fd = g_file_open_tmp("hypertrace-XXXXXX.xml", &path, error);
    if (fd < 0) {
        return false;
    }
    close(fd);
    xmlDocDumpMemory(d->doc, &text, &size);
    args[1] = path;
    ok = g_file_set_contents(path, (const char *)text, size, error) &&
         (out = virsh(d, args, error));
    xmlFree(text);
    g_unlink(path);
    return ok;
}

static xmlNodePtr find(xmlNodePtr parent, const char *name)
{
    xmlNodePtr n = parent ? parent->children : NULL;

    while (n && (n->type != XML_ELEMENT_NODE ||
                 strcmp((const char *)n->name, name))) {
        n = n->next;
    }
    return n;
}

/*
 * Find a child element. If it is missing, add it, and note its name in
 * @d->undo.
 */
static xmlNodePtr need(Domain *d, xmlNodePtr parent, const char *name)
{
    xmlNodePtr n = find(parent, name);

    if (!n) {
        n = xmlNewChild(parent, NULL, X(name), NULL);
        xmlNewTextChild(d->undo, d->undo->ns, X("added"), X(name));
    }
    return n;
}

static void show(Domain *d, const char *where, xmlNodePtr n)
{
    xmlBufferPtr b = xmlBufferCreate();

    xmlNodeDump(b, d->doc, n, 2, 1);
    g_string_append_printf(d->shown, "In <%s>:\n    %s\n", where,
                           (const char *)xmlBufferContent(b));
    xmlBufferFree(b);
}

/*
 * Find hypertrace's element in the metadata; NULL if hypertrace has not changed
 * the domain.
 */
static xmlNodePtr find_undo(const Domain *d)
{
    xmlNodePtr n = find(d->root, "metadata");

    for (n = n ? n->children : NULL; n; n = n->next) {
        if (n->type == XML_ELEMENT_NODE && n->ns &&
            !strcmp((const char *)n->ns->href, NAMESPACE)) {
            break;
        }
    }
    return n;
}

static void add_undo(Domain *d)
{
    xmlNodePtr metadata = find(d->root, "metadata") ?:
                          xmlNewChild(d->root, NULL, X("metadata"), NULL);

    d->undo = xmlNewChild(metadata, NULL, X("domain"), NULL);
    xmlSetNs(d->undo, xmlNewNs(d->undo, X(NAMESPACE), X(PREFIX)));
}

/*
 * Add words to the kernel's command line, for a domain whose kernel libvirt
 * boots.
 */
static void add_words(Domain *d, const char *words)
{
    xmlNodePtr os = find(d->root, "os");
    xmlNodePtr old = find(os, "cmdline"), n;
    xmlChar *before = old ? xmlNodeGetContent(old) : NULL;
    g_autofree char *text = ht_kernel_words_merge(before ? (char *)before : "",
                                                  words);

    if (old) {
        xmlNewTextChild(d->undo, d->undo->ns, X("cmdline"), before);
        xmlUnlinkNode(old);
        xmlFreeNode(old);
    }
    xmlFree(before);
    xmlNewTextChild(d->undo, d->undo->ns, X("words"), X(words));
    n = xmlNewTextChild(os, NULL, X("cmdline"), X(text));
    show(d, "os", n);
}

/*
 * Put the words into an SMBIOS string, for a guest that boots from its own
 * disk.
 */
static bool add_string(Domain *d, const char *words, GError **error)
{
    g_autofree char *text = g_strconcat(HT_RECORD_EXTRA, words, NULL);
    xmlNodePtr os = find(d->root, "os"), smbios, sysinfo, n;
    xmlChar *mode;
    bool ok;

    smbios = need(d, os, "smbios");
    mode = xmlGetProp(smbios, X("mode"));
    ok = !mode || !strcmp((char *)mode, "sysinfo");
    xmlFree(mode);
    if (!ok) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "the domain has "
                    "<smbios> of another mode than 'sysinfo', and only that "
                    "one can have strings: change it first");
        return false;
    }
    xmlSetProp(smbios, X("mode"), X("sysinfo"));
    sysinfo = need(d, d->root, "sysinfo");
    xmlSetProp(sysinfo, X("type"), X("smbios"));
    n = need(d, sysinfo, "oemStrings");
    xmlNewTextChild(n, NULL, X("entry"), X(text));
    xmlNewTextChild(d->undo, d->undo->ns, X("entry"), X(text));
    show(d, "os", smbios);
    show(d, "domain", sysinfo);
    return true;
}

static char *memory_name(const Domain *d)
{
    return g_strdup_printf("hypertrace-%s", d->name);
}

static void add_programs(Domain *d, uint64_t bytes)
{
    g_autofree char *name = memory_name(d);
    g_autofree char *mib = g_strdup_printf("%" PRIu64, bytes / MIB);
    xmlNodePtr n = xmlNewChild(find(d->root, "devices"), NULL, X("shmem"),
                               NULL), size;

    xmlNewProp(n, X("name"), X(name));
    xmlNewProp(n, X("role"), X("master"));
    xmlNewProp(xmlNewChild(n, NULL, X("model"), NULL), X("type"),
               X("ivshmem-plain"));
    size = xmlNewTextChild(n, NULL, X("size"), X(mib));
    xmlNewProp(size, X("unit"), X("M"));
    xmlNewTextChild(d->undo, d->undo->ns, X("shmem"), X(name));
    show(d, "devices", n);
}

static void drop(xmlNodePtr n)
{
    if (n) {
        xmlUnlinkNode(n);
        xmlFreeNode(n);
    }
}

/*
 * Remove the first @element in @parent whose attribute "name" is @text or, if
 * it has no such attribute, whose text is @text.
 */
static void drop_child(xmlNodePtr parent, const char *element,
                       const char *text)
{
    xmlNodePtr n;

    for (n = parent ? parent->children : NULL; n; n = n->next) {
        xmlChar *is;

        if (n->type != XML_ELEMENT_NODE ||
            strcmp((const char *)n->name, element)) {
            continue;
        }
        is = xmlGetProp(n, X("name")) ?: xmlNodeGetContent(n);
        if (is && !strcmp((char *)is, text)) {
            xmlFree(is);
            drop(n);
            return;
        }
        xmlFree(is);
    }
}

static bool is_empty(xmlNodePtr n)
{
    return n && !xmlChildElementCount(n);
}

/*
 * Undo the change to the domain that @note describes, a child of hypertrace's
 * element in the metadata. A note "cmdline" is left to undo_all().
 */
static void undo_one(Domain *d, xmlNodePtr note)
{
    const char *kind = (const char *)note->name;
    xmlNodePtr os = find(d->root, "os"), sysinfo = find(d->root, "sysinfo");
    xmlChar *text = xmlNodeGetContent(note);

    if (!strcmp(kind, "words")) {
        drop(find(os, "cmdline"));
    } else if (!strcmp(kind, "shmem")) {
        drop_child(find(d->root, "devices"), "shmem", (char *)text);
    } else if (!strcmp(kind, "entry")) {
        drop_child(find(sysinfo, "oemStrings"), "entry", (char *)text);
        if (is_empty(find(sysinfo, "oemStrings"))) {
            drop(find(sysinfo, "oemStrings"));
        }
    } else if (!strcmp(kind, "added") && !strcmp((char *)text, "smbios")) {
        drop(find(os, "smbios"));
    } else if (!strcmp(kind, "added") && !strcmp((char *)text, "sysinfo") &&
               is_empty(sysinfo)) {
        drop(sysinfo);
    }
    xmlFree(text);
}

static bool undo_all(Domain *d, GError **error)
{
    xmlNodePtr n, old, metadata;

    d->undo = find_undo(d);
    if (!d->undo) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT, "the domain was "
                    "not changed by 'hypertrace domain --apply'");
        return false;
    }
    for (n = d->undo->last; n; n = n->prev) {
        if (n->type == XML_ELEMENT_NODE) {
            undo_one(d, n);
        }
    }
    old = find(d->undo, "cmdline");
    if (old) {
        xmlChar *text = xmlNodeGetContent(old);

        xmlNewTextChild(find(d->root, "os"), NULL, X("cmdline"), text);
        xmlFree(text);
    }
    metadata = d->undo->parent;
    drop(d->undo);
    if (is_empty(metadata)) {
        drop(metadata);
    }
    return true;
}

static bool plan(const Domain *d, HtRecord *r, GError **error)
{
    const char *args[] = { "domxml-to-native", "qemu-argv", "--domain",
                           d->name, NULL };
    g_autofree char *text = virsh(d, args, error);
    g_auto(GStrv) argv = NULL;
    char **qemu;

    if (!text || !g_shell_parse_argv(text, NULL, &argv, error)) {
        return false;
    }
    /* In virsh's text, environment variables precede the program's name. */
    qemu = argv;
    while (*qemu && **qemu != '/' && strchr(*qemu, '=')) {
        qemu++;
    }
    return ht_record_prepare(r, qemu, error);
}

static bool change(Domain *d, const HtRecord *r, GError **error)
{
    const HtRecordPlan *p = r->plan;

    if (find_undo(d)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_EXIST, "the domain was "
                    "changed before: 'hypertrace domain --remove %s' takes "
                    "that back", d->name);
        return false;
    }
    add_undo(d);
    switch (p->given) {
    case HT_RECORD_WORDS_APPEND:
        add_words(d, p->words);
        break;
    case HT_RECORD_WORDS_SMBIOS:
    case HT_RECORD_WORDS_LOADER:
        if (!add_string(d, p->words, error)) {
            return false;
        }
        break;
    case HT_RECORD_WORDS_THERE:
        break;
    case HT_RECORD_WORDS_NONE:
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "the guest's "
                    "kernel cannot get words: %s",
                    p->words_why ? p->words_why : "it is not known");
        return false;
    }
    if (d->programs) {
        add_programs(d, d->programs);
    }
    if (!d->shown->len) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_EXIST, "the domain "
                    "needs no change: the kernel's command line has a ring");
        return false;
    }
    return true;
}

static void print_next_steps(const Domain *d, const HtRecord *r)
{
    if (r->plan->given == HT_RECORD_WORDS_LOADER) {
        puts("The guest's boot loader must pass the string on: see 'Changes "
             "of QEMU's command' in hypertrace-record(1).");
    }
    if (d->programs) {
        g_autofree char *name = memory_name(d);
        g_autofree char *path = g_build_filename("/dev/shm", name, NULL);

        /*
         * With a URI, the domain may be on another host, where this process
         * cannot test whether the file exists.
         */
        if (d->uri || !g_file_test(path, G_FILE_TEST_EXISTS)) {
            printf("If %s does not exist, before the start: hypertrace attach "
                   "--create=%" PRIu64 "M %s\n", path, d->programs / MIB,
                   path);
        }
        printf("Before each other start: hypertrace attach %s\n", path);
    }
    printf("To record the guest: hypertrace watch --name '%s'\n", d->name);
}

static void usage(void)
{
    fputs("usage: hypertrace domain [OPTIONS] DOMAIN\n\n"
          "Print what a domain of libvirt needs for recordings: words on the"
          " kernel's\ncommand line and, with --programs, a device.\n\n"
          "      --apply          change the domain; its next start has the"
          " change\n"
          "      --remove         take the change back\n"
          "  -e, --event LIST     events to record\n"
          "      --programs[=SIZE]  also the events of programs\n"
          "  -c, --connect URI    as virsh --connect\n", stdout);
}

static int run(Domain *d, HtRecord *r, bool apply, bool removal)
{
    g_autoptr(GError) error = NULL;
    bool ok = read_domain(d, apply || removal, &error);

    if (ok && removal) {
        ok = undo_all(d, &error) && define_domain(d, &error);
    } else if (ok) {
        ok = plan(d, r, &error) && change(d, r, &error) &&
             (!apply || define_domain(d, &error));
    }
    if (!ok) {
        return ht_error("%s: %s", d->name, error->message);
    }
    if (!removal) {
        fputs(d->shown->str, stdout);
        print_next_steps(d, r);
    }
    return HT_EXIT_OK;
}

int ht_domain(int argc, char **argv)
{
    enum { APPLY = 256, REMOVE, PROGRAMS };
    static const struct option options[] = {
        { "apply", no_argument, NULL, APPLY },
        { "remove", no_argument, NULL, REMOVE },
        { "event", required_argument, NULL, 'e' },
        { "programs", optional_argument, NULL, PROGRAMS },
        { "connect", required_argument, NULL, 'c' },
        { "help", no_argument, NULL, 'h' },
        { }
    };
    Domain d = { 0 };
    HtRecord r = { .memory_fd = -1, .qmp_fd = -1, .ready_fd = -1,
                   .quiet = true };
    bool apply = false, removal = false;
    int c, status;

    r.plan_options.private = true;
    r.plan_options.words_only = true;
    r.plan_options.size = HT_RECORD_SIZE;
    opterr = 0;
    while ((c = getopt_long(argc, argv, ":e:c:h", options, NULL)) >= 0) {
        switch (c) {
        case APPLY:
            apply = true;
            break;
        case REMOVE:
            removal = true;
            break;
        case 'e':
            r.plan_options.events = optarg;
            break;
        case PROGRAMS:
            if (!ht_record_memory("--programs", optarg,
                                  &d.programs, &status)) {
                return status;
            }
            break;
        case 'c':
            d.uri = optarg;
            break;
        case 'h':
            usage();
            return HT_EXIT_OK;
        default:
            return ht_wrong_option(c, argv, options);
        }
    }
    if (argc - optind != 1 || (apply && removal)) {
        return ht_usage_error(argc - optind != 1 ? "give one domain" :
                              "give --apply or --remove");
    }
    d.name = argv[optind];
    d.shown = g_string_new(NULL);
    status = run(&d, &r, apply, removal);
    g_string_free(d.shown, true);
    xmlFreeDoc(d.doc);
    ht_record_clear(&r);
    return status;
}
