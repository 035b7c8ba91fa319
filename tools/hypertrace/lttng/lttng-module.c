/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: load the modules that use LTTng
 */
#include "hypertrace/base.h"
#include <dlfcn.h>

#include "lttng/lttng-module.h"

/*
 * Get the path of a module: in the folder of the program if it is there, as in
 * a build tree, else in the folder of installed modules.
 */
static char *module_path(const char *name)
{
    g_autofree char *file = g_strdup_printf("hypertrace-lttng-%s.so", name);
    g_autofree char *program = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *dir = program ? g_path_get_dirname(program) : NULL;
    g_autofree char *built = dir ? g_build_filename(dir, file, NULL) : NULL;

    return built && g_file_test(built, G_FILE_TEST_EXISTS) ?
           g_steal_pointer(&built) :
           g_build_filename(HT_MODULES, file, NULL);
}

bool ht_lttng_module_find(const char *name, GError **error)
{
    g_autofree char *path = module_path(name);

    if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT, "this hypertrace "
                    "cannot use LTTng: there is no %s", path);
        return false;
    }
    return true;
}

const void *ht_lttng_module(const char *name, const char *symbol,
                            GError **error)
{
    g_autofree char *path = module_path(name);
    void *module, *address;

    if (!ht_lttng_module_find(name, error)) {
        return NULL;
    }
    module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    address = module ? dlsym(module, symbol) : NULL;
    if (!address) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
                    "cannot use LTTng: %s", dlerror());
    }
    return address;
}
