/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: the options and words that it adds to QEMU's command line
 *
 * In a row, KERNEL stands for a file that looks like a kernel, UKI for a file
 * that looks like a unified kernel image, DIR for the folder of these files,
 * and PARENT for the test's process ID. Promise: `record` understands an option
 * in the syntaxes of QEMU that the rows have, and drops no option of the user.
 */
#include "hypertrace/base.h"
#include <glib/gstdio.h>

#include "cli/number.h"
#include "record/functions.h"
#include "kernel/kernel-words.h"
#include "record/plan-words.h"
#include "record/plan.h"
#include "qemu/qemu-cmdline.h"

#define Q       "qemu-system-x86_64"
#define EVENTS  "sched,irq,initcall,printk,task,module:module_load," \
                "module:module_free"
#define WORDS   "reserve_mem=16M:2M:ht trace_instance=boot_map@ht," EVENTS
#define EXTRA   "io.systemd.stub.kernel-cmdline-extra="
#define ESCAPED "reserve_mem=16M:2M:ht trace_instance=boot_map@ht,,sched,," \
                "irq,,initcall,,printk,,task,,module:module_load,," \
                "module:module_free"
#define SMBIOS  "type=11,value=" EXTRA ESCAPED
#define TOP(n)  "|-object|memory-backend-file,id=ht-top,size=" #n "M," \
                "mem-path=/proc/self/fd/100,share=on"
#define NODES(low, cpus) TWO_NODES(low, 118, cpus)
#define TWO_NODES(low, top, cpus)                                            \
    "|-object|memory-backend-ram,id=ht-ram,size=" #low "M" TOP(top)          \
    "|-numa|node,nodeid=0,cpus=" cpus ",memdev=ht-ram"                       \
    "|-numa|node,nodeid=1,memdev=ht-top"
#define ALL(n)                                                               \
    "|-object|memory-backend-file,id=ht-ram,size=" #n "M,"                   \
    "mem-path=/proc/self/fd/100,share=on|-machine|memory-backend=ht-ram"

#define KEPT    Q "|-m|1G|-kernel|KERNEL"

static const struct {
    const char *what;
    /* words of QEMU's command line before the change, separated by | */
    const char *before;
    /*
     * words that are expected after the change; NULL: the command line is
     * refused; "": no word changes
     */
    const char *after;
    HtRecordMemory memory;
    HtRecordWords given;
    const char *message;
} rows[] = {
    { "the usual", Q "|-m|512|-kernel|KERNEL|-append|quiet",
      Q "|-m|512|-kernel|KERNEL|-append|quiet " WORDS NODES(394, "0"),
      HT_RECORD_NODE, HT_RECORD_WORDS_APPEND, NULL },
    { "memory that is no multiple of 2 MiB", Q "|-m|513|-kernel|KERNEL",
      Q "|-m|513|-kernel|KERNEL" TWO_NODES(394, 119, "0") "|-append|" WORDS,
      HT_RECORD_NODE, HT_RECORD_WORDS_APPEND, NULL },
    { "no -append", Q "|-m|1G|-smp|4|-kernel|KERNEL",
      Q "|-m|1G|-smp|4|-kernel|KERNEL" NODES(906, "0-3") "|-append|" WORDS,
      HT_RECORD_NODE, HT_RECORD_WORDS_APPEND, NULL },
    { "the last -append counts",
      Q "|-m|1G|-append|a|-kernel|KERNEL|-append|b",
      Q "|-m|1G|-append|a|-kernel|KERNEL|-append|b " WORDS NODES(906, "0"),
      HT_RECORD_NODE, HT_RECORD_WORDS_APPEND, NULL },
    { "before init's arguments",
      Q "|-m|1G|-kernel|KERNEL|--append|a -- -x",
      Q "|-m|1G|-kernel|KERNEL|--append|a " WORDS " -- -x" NODES(906, "0"),
      HT_RECORD_NODE, HT_RECORD_WORDS_APPEND, NULL },
    { "an option's value is no option",
      Q "|-m|1G|-name|-append|-kernel|KERNEL|-append|a--b",
      Q "|-m|1G|-name|-append|-kernel|KERNEL|-append|a--b " WORDS
      NODES(906, "0"), HT_RECORD_NODE, HT_RECORD_WORDS_APPEND, NULL },
    { "a value that looks like an option without one",
      Q "|-m|1G|-kernel|KERNEL|-pidfile|-nographic|-append|-S",
      Q "|-m|1G|-kernel|KERNEL|-pidfile|-nographic|-append|-S " WORDS
      NODES(906, "0"), HT_RECORD_NODE, HT_RECORD_WORDS_APPEND, NULL },
    { "an option without a value",
      "qemu-system-aarch64|-M|virt|-m|1G|-semihosting|-append|a|-kernel|KERNEL",
      "qemu-system-aarch64|-M|virt|-m|1G|-semihosting|-append|a " WORDS
      "|-kernel|KERNEL" NODES(906, "0"), HT_RECORD_NODE,
      HT_RECORD_WORDS_APPEND, NULL },
    { "an unknown option",
      Q "|-m|1G|-of-tomorrow|-append|a|-kernel|KERNEL",
      Q "|-m|1G|-of-tomorrow|-append|a " WORDS "|-kernel|KERNEL"
      NODES(906, "0"), HT_RECORD_NODE, HT_RECORD_WORDS_APPEND, NULL },
    { "a value of an unknown option",
      Q "|-m|1G|-of-tomorrow|x|-kernel|KERNEL|-serial|-|-append|-a",
      Q "|-m|1G|-of-tomorrow|x|-kernel|KERNEL|-serial|-|-append|-a " WORDS
      NODES(906, "0"), HT_RECORD_NODE, HT_RECORD_WORDS_APPEND, NULL },
    { "a ring already",
      Q "|-m|1G|-kernel|KERNEL|-append|trace_instance=a@0x1000:1M,x b",
      Q "|-m|1G|-kernel|KERNEL|-append|trace_instance=a@0x1000:1M,x b"
      NODES(906, "0"), HT_RECORD_NODE, HT_RECORD_WORDS_THERE, NULL },
    { "an instance that is no ring",
      Q "|-m|1G|-kernel|KERNEL|-append|trace_instance=a,x b@c",
      Q "|-m|1G|-kernel|KERNEL|-append|trace_instance=a,x b@c " WORDS
      NODES(906, "0"), HT_RECORD_NODE, HT_RECORD_WORDS_APPEND, NULL },
    { "a label that is taken",
      Q "|-m|1G|-kernel|KERNEL|-append|reserve_mem=1M:4k:ht",
      Q "|-m|1G|-kernel|KERNEL|-append|reserve_mem=1M:4k:ht "
      "reserve_mem=16M:2M:hypertrace trace_instance=boot_map@hypertrace,"
      EVENTS NODES(906, "0"), HT_RECORD_NODE, HT_RECORD_WORDS_APPEND, NULL },
    { "a boot loader", Q "|-m|1G|disk.img",
      Q "|-m|1G|disk.img" NODES(906, "0") "|-smbios|" SMBIOS,
      HT_RECORD_NODE, HT_RECORD_WORDS_LOADER, NULL },
    { "a unified kernel image", Q "|-m|1G|-kernel|UKI",
      Q "|-m|1G|-kernel|UKI" NODES(906, "0") "|-smbios|" SMBIOS,
      HT_RECORD_NODE, HT_RECORD_WORDS_SMBIOS, NULL },
    { "the user's own words for the stub",
      Q "|-m|1G|-kernel|UKI|-smbios|type=11,value=x,value=" EXTRA "a,,b -- c",
      Q "|-m|1G|-kernel|UKI|-smbios|type=11,value=x,value=" EXTRA "a,,b "
      ESCAPED " -- c" NODES(906, "0"),
      HT_RECORD_NODE, HT_RECORD_WORDS_SMBIOS, NULL },
    { "a type of SMBIOS in another base; only the first string is read",
      Q "|-m|1G|x|-smbios|value=" EXTRA "a,type=0xb|-smbios|type=11,value="
      EXTRA "b",
      Q "|-m|1G|x|-smbios|value=" EXTRA "a " ESCAPED ",type=0xb|-smbios|"
      "type=11,value=" EXTRA "b" NODES(906, "0"),
      HT_RECORD_NODE, HT_RECORD_WORDS_LOADER, NULL },
    { "the user's words for the stub in a file",
      Q "|-m|1G|x|-smbios|type=11,path=DIR/extra",
      Q "|-m|1G|x|-smbios|type=11,value=" EXTRA "from a file " ESCAPED
      NODES(906, "0"), HT_RECORD_NODE, HT_RECORD_WORDS_LOADER, NULL },
    { "a ring in the user's words for the stub",
      Q "|-m|1G|x|-smbios|type=11,value=" EXTRA "trace_instance=a@b",
      Q "|-m|1G|x|-smbios|type=11,value=" EXTRA "trace_instance=a@b"
      NODES(906, "0"), HT_RECORD_NODE, HT_RECORD_WORDS_THERE, NULL },
    { "the same text in another type of SMBIOS",
      Q "|-m|1G|x|-smbios|type=1,serial=" EXTRA,
      Q "|-m|1G|x|-smbios|type=1,serial=" EXTRA NODES(906, "0")
      "|-smbios|" SMBIOS, HT_RECORD_NODE, HT_RECORD_WORDS_LOADER, NULL },
    { "a binary table of the strings' type",
      Q "|-m|1G|x|-smbios|file=DIR/oem", Q "|-m|1G|x|-smbios|file=DIR/oem"
      NODES(906, "0"), HT_RECORD_NODE, HT_RECORD_WORDS_LOADER, "SMBIOS" },
    { "processors of sockets",
      Q "|-m|size=1G,slots=2,maxmem=4G|-smp|sockets=2,cores=3|x",
      Q "|-m|size=1G,slots=2,maxmem=4G|-smp|sockets=2,cores=3|x"
      NODES(906, "0-5") "|-smbios|" SMBIOS, HT_RECORD_NODE,
      HT_RECORD_WORDS_LOADER, NULL },
    { "more processors later", Q "|-m|1G|-smp|2,maxcpus=8|x",
      Q "|-m|1G|-smp|2,maxcpus=8|x" NODES(906, "0-7") "|-smbios|" SMBIOS,
      HT_RECORD_NODE, HT_RECORD_WORDS_LOADER, NULL },
    { "merged values",
      Q "|-m|slots=2,maxmem=4G|-smp|maxcpus=0x8|-m|1G|-smp|2|x",
      Q "|-m|slots=2,maxmem=4G|-smp|maxcpus=0x8|-m|1G|-smp|2|x"
      NODES(906, "0-7") "|-smbios|" SMBIOS, HT_RECORD_NODE,
      HT_RECORD_WORDS_LOADER, NULL },
    { "all as properties of the machine",
      Q "|-machine|smp.cpus=2,memory.size=1G,kernel=KERNEL,append=a,,b",
      Q "|-machine|smp.cpus=2,memory.size=1G,kernel=KERNEL,append=a,,b"
      NODES(906, "0-1") "|-append|a,b " WORDS, HT_RECORD_NODE,
      HT_RECORD_WORDS_APPEND, NULL },
    { "a property of the machine after -append",
      Q "|-m|1G|-append|a|-kernel|KERNEL|-M|append=b",
      Q "|-m|1G|-append|a|-kernel|KERNEL|-M|append=b" NODES(906, "0")
      "|-append|b " WORDS, HT_RECORD_NODE, HT_RECORD_WORDS_APPEND, NULL },
    { "a machine by its type", Q "|-M|type=q35|-M|type=microvm|-m|1G|x",
      Q "|-M|type=q35|-M|type=microvm|-m|1G|x" ALL(1024), HT_RECORD_MEMFD,
      HT_RECORD_WORDS_LOADER, "SMBIOS" },
    { "a configuration file",
      Q "|-readconfig|DIR/config|-m|1G",
      Q "|-readconfig|DIR/config|-m|1G" NODES(906, "0-2")
      "|-append|of a file " WORDS, HT_RECORD_NODE, HT_RECORD_WORDS_APPEND,
      NULL },
    { "a configuration file that cannot be read",
      Q "|-readconfig|DIR/nothing|-m|1G|-kernel|KERNEL",
      Q "|-readconfig|DIR/nothing|-m|1G|-kernel|KERNEL|-append|" WORDS,
      HT_RECORD_PROCESS, HT_RECORD_WORDS_APPEND, "options" },
    { "little memory", Q "|-m|128|-kernel|KERNEL",
      Q "|-m|128|-kernel|KERNEL" ALL(128) "|-append|" WORDS,
      HT_RECORD_MEMFD, HT_RECORD_WORDS_APPEND, NULL },
    { "the default memory", Q "|-kernel|KERNEL",
      Q "|-kernel|KERNEL" ALL(128) "|-append|" WORDS, HT_RECORD_MEMFD,
      HT_RECORD_WORDS_APPEND, NULL },
    { "a machine without nodes", Q "|-M|microvm|-m|1G|-kernel|KERNEL",
      Q "|-M|microvm|-m|1G|-kernel|KERNEL" ALL(1024) "|-append|" WORDS,
      HT_RECORD_MEMFD, HT_RECORD_WORDS_APPEND, NULL },
    { "a versioned machine", Q "|-machine|pc-q35-7.2,accel=tcg|-m|1G|x",
      Q "|-machine|pc-q35-7.2,accel=tcg|-m|1G|x" NODES(906, "0")
      "|-smbios|" SMBIOS, HT_RECORD_NODE, HT_RECORD_WORDS_LOADER, NULL },
    { "a machine of a distribution's",
      Q "|-machine|pc-q35-rhel9.2.0|-m|1G|x",
      Q "|-machine|pc-q35-rhel9.2.0|-m|1G|x" NODES(906, "0")
      "|-smbios|" SMBIOS, HT_RECORD_NODE, HT_RECORD_WORDS_LOADER, NULL },
    { "a machine from before there was all this",
      Q "|-M|pc-i440fx-2.0|-m|1G|x", "", HT_RECORD_PROCESS,
      HT_RECORD_WORDS_LOADER, "SMBIOS" },
    { "an unknown machine", Q "|-M|isapc|-m|1G|-kernel|KERNEL",
      Q "|-M|isapc|-m|1G|-kernel|KERNEL|-append|" WORDS, HT_RECORD_PROCESS,
      HT_RECORD_WORDS_APPEND, "kind of machine" },
    { "an architecture without a default machine",
      "qemu-system-aarch64|-m|1G|x", "", HT_RECORD_PROCESS,
      HT_RECORD_WORDS_LOADER, "kind of machine" },
    { "an unknown architecture", "qemu-system-ppc64|-m|1G|x", "",
      HT_RECORD_PROCESS, HT_RECORD_WORDS_LOADER, "kind of machine" },
    { "arm64", "qemu-system-aarch64|-M|virt,gic-version=3|-m|1G|x",
      "qemu-system-aarch64|-M|virt,gic-version=3|-m|1G|x" NODES(906, "0")
      "|-smbios|" SMBIOS, HT_RECORD_NODE, HT_RECORD_WORDS_LOADER, NULL },
    { "arm64 with tags in its memory",
      "qemu-system-aarch64|-M|virt|-M|mte=on|-m|1G|-kernel|KERNEL",
      "qemu-system-aarch64|-M|virt|-M|mte=on|-m|1G|-kernel|KERNEL|-append|"
      WORDS, HT_RECORD_PROCESS, HT_RECORD_WORDS_APPEND, "property" },
    { "properties of nodes that are not there",
      Q "|-M|q35,hmat=on|-m|1G|-kernel|KERNEL",
      Q "|-M|q35,hmat=on|-m|1G|-kernel|KERNEL|-append|" WORDS,
      HT_RECORD_PROCESS, HT_RECORD_WORDS_APPEND, "property" },
    { "shared memory of the user's",
      Q "|-m|1G|-object|memory-backend-file,id=m,size=1G,"
      "mem-path=/dev/shm/ht-test-ram,share=on|-machine|memory-backend=m|x",
      Q "|-m|1G|-object|memory-backend-file,id=m,size=1G,"
      "mem-path=/dev/shm/ht-test-ram,share=on|-machine|memory-backend=m|x"
      "|-smbios|" SMBIOS, HT_RECORD_SHARED, HT_RECORD_WORDS_LOADER, NULL },
    { "shared memory in JSON, and on a disk",
      Q "|-m|1G|-object|{'qom-type':\"memory-backend-file\",'id':'m',"
      "'size':1073741824,'mem-path':'/nowhere/ram','share':true}|-machine|"
      "memory-backend=m|-kernel|KERNEL",
      Q "|-m|1G|-object|{'qom-type':\"memory-backend-file\",'id':'m',"
      "'size':1073741824,'mem-path':'/nowhere/ram','share':true}|-machine|"
      "memory-backend=m|-kernel|KERNEL|-append|" WORDS,
      HT_RECORD_SHARED, HT_RECORD_WORDS_APPEND, NULL },
    { "shared memory with a short boolean",
      Q "|-m|1G|-object|qom-type=memory-backend-file,id=m,size=1G,"
      "mem-path=/dev/shm/ht-test-ram,share|-numa|node,memdev=m|-kernel|KERNEL",
      Q "|-m|1G|-object|qom-type=memory-backend-file,id=m,size=1G,"
      "mem-path=/dev/shm/ht-test-ram,share|-numa|node,memdev=m|-kernel|KERNEL"
      "|-append|" WORDS, HT_RECORD_SHARED, HT_RECORD_WORDS_APPEND, NULL },
    { "memory that a device shares, on a disk",
      Q "|-M|nvdimm=on|-m|1G,slots=2,maxmem=4G|-kernel|KERNEL|-object|"
      "memory-backend-file,id=n,size=1G,mem-path=/nowhere/n,share=on|-device|"
      "nvdimm,memdev=n",
      Q "|-M|nvdimm=on|-m|1G,slots=2,maxmem=4G|-kernel|KERNEL|-object|"
      "memory-backend-file,id=n,size=1G,mem-path=/nowhere/n,share=on|-device|"
      "nvdimm,memdev=n" NODES(906, "0") "|-append|" WORDS, HT_RECORD_NODE,
      HT_RECORD_WORDS_APPEND, NULL },
    { "shared memory of a device that is no RAM",
      Q "|-m|1G|-kernel|KERNEL|-object|memory-backend-file,id=s,size=1G,"
      "mem-path=/dev/shm/ht-test-other,share=on|-device|ivshmem-plain,memdev=s",
      Q "|-m|1G|-kernel|KERNEL|-object|memory-backend-file,id=s,size=1G,"
      "mem-path=/dev/shm/ht-test-other,share=on|-device|ivshmem-plain,memdev=s"
      NODES(906, "0") "|-append|" WORDS, HT_RECORD_NODE,
      HT_RECORD_WORDS_APPEND, NULL },
    { "shared RAM, and shared memory of devices",
      Q "|-m|1G|-kernel|KERNEL|-object|memory-backend-memfd,id=o,size=1M|"
      "-object|memory-backend-file,id=s,size=1G,mem-path=/dev/shm/ht-test-other,"
      "share=on|-device|{'driver':'ivshmem-plain','memdev':'s'}|-object|"
      "memory-backend-file,id=m,size=1G,mem-path=/dev/shm/ht-test-ram,share=on|"
      "-machine|memory-backend=m|-device|virtio-pmem-pci,memdev=o",
      Q "|-m|1G|-kernel|KERNEL|-object|memory-backend-memfd,id=o,size=1M|"
      "-object|memory-backend-file,id=s,size=1G,mem-path=/dev/shm/ht-test-other,"
      "share=on|-device|{'driver':'ivshmem-plain','memdev':'s'}|-object|"
      "memory-backend-file,id=m,size=1G,mem-path=/dev/shm/ht-test-ram,share=on|"
      "-machine|memory-backend=m|-device|virtio-pmem-pci,memdev=o|-append|"
      WORDS, HT_RECORD_SHARED, HT_RECORD_WORDS_APPEND, NULL },
    { "an id that is taken",
      Q "|-m|1G|-kernel|KERNEL|-object|memory-backend-ram,id=ht-ram,size=1M",
      Q "|-m|1G|-kernel|KERNEL|-object|memory-backend-ram,id=ht-ram,size=1M"
      "|-object|memory-backend-ram,id=ht-ram1,size=906M" TOP(118)
      "|-numa|node,nodeid=0,cpus=0,memdev=ht-ram1"
      "|-numa|node,nodeid=1,memdev=ht-top|-append|" WORDS, HT_RECORD_NODE,
      HT_RECORD_WORDS_APPEND, NULL },
    { "private memory of the user's",
      Q "|-m|1G|-object|memory-backend-ram,id=m,size=1G|-numa|node,memdev=m|x",
      Q "|-m|1G|-object|memory-backend-ram,id=m,size=1G|-numa|node,memdev=m|x"
      "|-smbios|" SMBIOS, HT_RECORD_PROCESS, HT_RECORD_WORDS_LOADER,
      "not shared" },
    { "a file without a name",
      Q "|-m|1G|-object|memory-backend-file,id=m,size=1G,mem-path=/dev/shm,"
      "share=on|-machine|memory-backend=m|x",
      Q "|-m|1G|-object|memory-backend-file,id=m,size=1G,mem-path=/dev/shm,"
      "share=on|-machine|memory-backend=m|x|-smbios|" SMBIOS,
      HT_RECORD_PROCESS, HT_RECORD_WORDS_LOADER, "not shared" },
    { "nodes of the user's", Q "|-m|1G|-numa|node|x",
      Q "|-m|1G|-numa|node|x|-smbios|" SMBIOS, HT_RECORD_PROCESS,
      HT_RECORD_WORDS_LOADER, "not shared" },
    { "a saved state", Q "|-m|1G|-loadvm|s|-kernel|KERNEL", "",
      HT_RECORD_PROCESS, HT_RECORD_WORDS_NONE, "saved state" },
    { "a migration", Q "|-m|1G|-incoming|defer|disk", "",
      HT_RECORD_PROCESS, HT_RECORD_WORDS_NONE, "saved state" },
    { "a replay", Q "|-m|1G|-icount|shift=1,rr=replay,rrfile=f|disk", "",
      HT_RECORD_PROCESS, HT_RECORD_WORDS_NONE, "replayed" },
    { "nodes that come later", Q "|-m|1G|--preconfig|-kernel|KERNEL",
      Q "|-m|1G|--preconfig|-kernel|KERNEL|-append|" WORDS,
      HT_RECORD_PROCESS, HT_RECORD_WORDS_APPEND, "QMP" },
    { "a kernel of another kind", Q "|-m|1G|-kernel|/proc/self/cmdline",
      Q "|-m|1G|-kernel|/proc/self/cmdline" NODES(906, "0"), HT_RECORD_NODE,
      HT_RECORD_WORDS_NONE, "not a Linux kernel" },
    { "in the background", Q "|-daemonize|-m|1G|x",
      Q "|-daemonize|-m|1G|x" NODES(906, "0") "|-smbios|" SMBIOS,
      HT_RECORD_NODE, HT_RECORD_WORDS_LOADER, NULL },
    { "behind a program that keeps descriptors",
      "nice|-n|5|" Q "|-m|1G|-kernel|KERNEL",
      "nice|-n|5|" Q "|-m|1G|-kernel|KERNEL" NODES(906, "0") "|-append|" WORDS,
      HT_RECORD_NODE, HT_RECORD_WORDS_APPEND, NULL },
    { "a name without the architecture", "/usr/bin/kvm|-m|1G|-kernel|KERNEL",
      "/usr/bin/kvm|-m|1G|-kernel|KERNEL" NODES(906, "0") "|-append|" WORDS,
      HT_RECORD_NODE, HT_RECORD_WORDS_APPEND, NULL },
    { "such a name behind a program",
      "nice|-n|5|qemu-kvm|-m|1G|-kernel|KERNEL",
      "nice|-n|5|qemu-kvm|-m|1G|-kernel|KERNEL" NODES(906, "0") "|-append|"
      WORDS, HT_RECORD_NODE, HT_RECORD_WORDS_APPEND, NULL },
    { "a script that passes its arguments to QEMU",
      "./start.sh|-m|1G|-nographic|-kernel|KERNEL",
      "./start.sh|-m|1G|-nographic|-kernel|KERNEL" NODES(906, "0")
      "|-append|" WORDS, HT_RECORD_NODE, HT_RECORD_WORDS_APPEND, NULL },
    { "a script that adds the kernel",
      "./start.sh|-m|1G|-append|quiet|-nographic",
      "./start.sh|-m|1G|-append|quiet " WORDS "|-nographic" NODES(906, "0"),
      HT_RECORD_NODE, HT_RECORD_WORDS_APPEND, NULL },
    { "no words for a kernel, and no kernel", Q "|-m|1G|-append||x",
      Q "|-m|1G|-append||x" NODES(906, "0") "|-smbios|" SMBIOS,
      HT_RECORD_NODE, HT_RECORD_WORDS_LOADER, NULL },
    { "behind a program that closes descriptors",
      "nice|sudo|-E|" Q "|-m|1G|-kernel|KERNEL",
      "nice|sudo|-E|" Q "|-m|1G|-kernel|KERNEL"
      "|-object|memory-backend-ram,id=ht-ram,size=906M"
      "|-object|memory-backend-file,id=ht-top,size=118M,"
      "mem-path=/proc/PARENT/fd/100,share=on"
      "|-numa|node,nodeid=0,cpus=0,memdev=ht-ram"
      "|-numa|node,nodeid=1,memdev=ht-top|-append|" WORDS,
      HT_RECORD_NODE, HT_RECORD_WORDS_APPEND, NULL },
    /* QEMU of another user cannot open the recorder's memory: add only words */
    { "behind a change of the user", "sudo|-nu|libvirt-qemu|" KEPT,
      "sudo|-nu|libvirt-qemu|" KEPT "|-append|" WORDS,
      HT_RECORD_PROCESS, HT_RECORD_WORDS_APPEND, "starts QEMU" },
    { "behind a change of the user by its name",
      "/usr/bin/sudo|--user=qemu|" KEPT,
      "/usr/bin/sudo|--user=qemu|" KEPT "|-append|" WORDS,
      HT_RECORD_PROCESS, HT_RECORD_WORDS_APPEND, "starts QEMU" },
    { "behind doas with a user", "doas|-u|qemu|" KEPT,
      "doas|-u|qemu|" KEPT "|-append|" WORDS,
      HT_RECORD_PROCESS, HT_RECORD_WORDS_APPEND, "starts QEMU" },
    { "behind an unknown program",
      "docker|run|-m|9G|" Q "|-m|1G|-kernel|KERNEL",
      "docker|run|-m|9G|" Q "|-m|1G|-kernel|KERNEL|-append|" WORDS,
      HT_RECORD_PROCESS, HT_RECORD_WORDS_APPEND, "starts QEMU" },
    { "after a known and an unknown program",
      "sudo|unshare|-n|" KEPT, "sudo|unshare|-n|" KEPT "|-append|" WORDS,
      HT_RECORD_PROCESS, HT_RECORD_WORDS_APPEND, "starts QEMU" },
    { "another program", "vmm|--kernel|KERNEL|-m|1G", "",
      HT_RECORD_PROCESS, HT_RECORD_WORDS_NONE, "not known to be QEMU" },
    { "SEV", Q "|-object|sev-guest,id=s|-machine|q35|x", NULL, 0, 0,
      "confidential" },
    { "TDX by its machine", Q "|-machine|q35,confidential-guest-support=t|x",
      NULL, 0, 0, "confidential" },
    { "SEV in JSON", Q "|-semihosting|-object|{\"qom-type\": \"sev-guest\"}|x",
      NULL, 0, 0, "confidential" },
    { "no file", Q "|-kernel|nowhere/vmlinuz", NULL, 0, 0,
      "nowhere/vmlinuz" },
};

/* Paths of the files that rows name */
typedef struct Files {
    char *dir, *kernel, *uki;
} Files;

static char *write_file(const Files *f, const char *name, const void *data,
                        gssize size)
{
    char *path = g_build_filename(f->dir, name, NULL);

    g_assert_true(g_file_set_contents(path, data, size, NULL));
    return path;
}

static void write_config(const Files *f)
{
    g_autofree char *text = g_strdup_printf(
        "# a comment\n[machine]\n  type = \"q35\"\n  kernel = \"%s\"\n"
        "  append = \"of a file\"\n\n[smp-opts]\n  cpus = \"3\"\n"
        "[drive \"x\"]\n  if = \"none\"\n", f->kernel);

    g_free(write_file(f, "config", text, -1));
}

/*
 * Write a file that counts as a unified kernel image: a PE file with a section
 * .linux.
 */
static char *write_uki(const Files *f)
{
    uint8_t image[0x400] = "MZ";

    image[0x3c] = 0x80;
    memcpy(image + 0x80, "PE\0\0\x64\x86\1", 7);
    memcpy(image + 0x98, ".linux\0", 8);
    image[0x98 + 8] = 0x10;
    image[0x98 + 21] = 0x02;
    return write_file(f, "uki", image, sizeof(image));
}

static Files make_files(void)
{
    uint8_t image[0x400] = { 0 };
    Files f = { .dir = g_dir_make_tmp("ht-plan-XXXXXX", NULL) };

    g_assert_nonnull(f.dir);
    memcpy(image + 0x202, "HdrS", 4);
    f.kernel = write_file(&f, "kernel", image, sizeof(image));
    f.uki = write_uki(&f);
    write_config(&f);
    g_free(write_file(&f, "oem", "\x0b\x05\0\0\0\0", 7));
    g_free(write_file(&f, "extra", EXTRA "from a file", -1));
    return f;
}

static void remove_files(Files *f)
{
    static const char * const names[] = {
        "kernel", "uki", "config", "oem", "extra",
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(f->dir, names[i], NULL);

        g_unlink(path);
    }
    g_rmdir(f->dir);
    g_free(f->dir);
    g_free(f->kernel);
    g_free(f->uki);
}

static char **words_of(const char *row, const Files *f)
{
    g_autoptr(GString) text = g_string_new(row);
    g_autofree char *pid = g_strdup_printf("%d", (int)getpid());

    g_string_replace(text, "PARENT", pid, 0);
    g_string_replace(text, "KERNEL", f->kernel, 0);
    g_string_replace(text, "UKI", f->uki, 0);
    g_string_replace(text, "DIR", f->dir, 0);
    return g_strsplit(text->str, "|", -1);
}

static HtRecordPlan *plan(const char *row, const Files *f,
                          const char *events, GError **error)
{
    HtRecordOptions options = { .events = events, .size = HT_RECORD_SIZE };
    g_auto(GStrv) before = words_of(row, f);

    return ht_record_plan(before, &options, error);
}

static void check_row(unsigned i, const Files *f)
{
    const char *expect = rows[i].after[0] ? rows[i].after : rows[i].before;
    g_autoptr(GError) error = NULL;
    g_autoptr(HtRecordPlan) p = plan(rows[i].before, f, NULL, &error);
    g_auto(GStrv) after = words_of(expect, f);
    g_autofree char *expected = g_strjoinv("|", after), *got = NULL;
    const char *message = rows[i].message;

    g_assert_no_error(error);
    got = g_strjoinv("|", p->argv);
    g_assert_cmpstr(got, ==, expected);
    g_assert_cmpint(p->memory, ==, rows[i].memory);
    g_assert_cmpint(p->given, ==, rows[i].given);
    /* the files to read as RAM are only those of the machine's RAM */
    g_assert_cmpint(p->files->len, ==, p->memory == HT_RECORD_SHARED);
    g_assert_true(!p->files->len || g_str_has_suffix(p->files->pdata[0],
                                                     "ram"));
    g_assert_true(!message || (p->why && strstr(p->why, message)) ||
                  (p->words_why && strstr(p->words_why, message)));
}

static void test_rows(void)
{
    Files f = make_files();
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;

        g_test_message("%s", rows[i].what);
        if (rows[i].after) {
            check_row(i, &f);
        } else {
            g_assert_null(plan(rows[i].before, &f, NULL, &error));
            g_assert_nonnull(error);
            g_assert_nonnull(strstr(error->message, rows[i].message));
        }
    }
    remove_files(&f);
}

/*
 * Pieces of QEMU's command lines, for any combination and order. "%" stands for
 * the position of the piece in the command line.
 */
static const char * const pieces[] = {
    "-m|1G", "-m|size=1G", "-m|1024", "-m|1048576K", "-m|1024M,slots=2",
    "-m|maxmem=4G", "-m|512", "-m|0.5G", "-m|100M", "-M|q35", "-M|pc",
    "-machine|type=pc-q35-7.2", "-M|microvm", "-M|q35,usb=off", "-smp|4",
    "-smp|cpus=2", "-smp|maxcpus=8", "-smp|sockets=2", "-kernel|KERNEL",
    "-machine|kernel=KERNEL", "-kernel|UKI", "-append|a b",
    "-append|a=\"b -- c\" d", "-append|x -- y", "-append|x=\"open",
    "-M|append=c,,d", "-append|trace_instance=q,e", "-initrd|KERNEL",
    "-object|memory-backend-ram,id=o%,size=1M",
    "-object|{\"qom-type\":\"rng-random\",\"id\":\"o%\"}",
    "-object|memory-backend-file,id=ht-top,size=1M,mem-path=/nowhere",
    "-smbios|type=11,value=v%", "-smbios|type=1,serial=s,,%",
    "-smbios|type=11,value=" EXTRA "mine",
    "-name|guest=g%,debug-threads=on", "-readconfig|DIR/config",
    "-nographic", "-nodefaults", "-S", "-no-reboot", "disk%.img",
    "-device|e1000,id=d%", "-drive|file=f%,if=none,id=drv%", "-cpu|max,-x2apic",
    "-accel|tcg", "-pidfile|-m", "-uuid|0", "-rtc|base=utc", "-enable-kvm",
    "-fw_cfg|name=opt/x%,string=-append", "-serial|none", "-tomorrow|x",
};

static char *generate(GRand *rand)
{
    GString *line = g_string_new(Q);
    unsigned n = g_rand_int_range(rand, 0, 12), i;

    for (i = 0; i < n; i++) {
        const char *piece =
            pieces[g_rand_int_range(rand, 0, G_N_ELEMENTS(pieces))];
        g_autofree char *number = g_strdup_printf("%u", i);
        g_autoptr(GString) text = g_string_new(piece);

        g_string_replace(text, "%", number, 0);
        g_string_append_printf(line, "|%s", text->str);
    }
    return g_string_free(line, false);
}

/*
 * Split a kernel command line at spaces outside quotes. All text from "-- " on
 * is one word.
 */
static GPtrArray *split(const char *text)
{
    GPtrArray *words = g_ptr_array_new_with_free_func(g_free);
    bool quoted = false;
    const char *p, *begin = text;

    for (p = text; ; p++) {
        quoted ^= *p == '"';
        if (*p && (quoted || *p != ' ')) {
            continue;
        }
        if (p > begin) {
            g_ptr_array_add(words, g_strndup(begin, p - begin));
        }
        begin = p + 1;
        if (!*p) {
            return words;
        }
        if (g_str_has_prefix(begin, "-- ")) {
            g_ptr_array_add(words, g_strdup(begin));
            return words;
        }
    }
}

/*
 * Assert that @after consists of the words of @before in their order, and
 * those of @added in theirs.
 */
static void check_words(const char *before, const char *after,
                        const char *added)
{
    g_autoptr(GPtrArray) b = split(before), a = split(after);
    g_autoptr(GPtrArray) more = split(added);
    unsigned i, at = 0, found = 0;

    for (i = 0; i < a->len; i++) {
        if (at < b->len && !strcmp(a->pdata[i], b->pdata[at])) {
            at++;
        } else {
            g_assert_cmpuint(found, <, more->len);
            g_assert_cmpstr(a->pdata[i], ==, more->pdata[found]);
            found++;
        }
    }
    g_assert_cmpuint(at, ==, b->len);
    g_assert_cmpuint(found, ==, more->len);
}

static uint64_t size_of(const HtQemu *q)
{
    const char *size = ht_opts_get(q->memory, "size");
    uint64_t bytes = 128 << 20;

    g_assert_true(!size || ht_number_size(size, 'M', &bytes));
    return bytes;
}

/* Assert that the backends of RAM, if any, together have the size of -m. */
static void check_memory(const HtRecordPlan *p, const HtQemu *after)
{
    const char *backend = ht_opts_get(after->machine, "memory-backend");
    uint64_t sum = 0, bytes;
    unsigned i;

    for (i = 0; i < after->numa->len; i++) {
        const char *id = ht_opts_get(after->numa->pdata[i], "memdev");
        const HtOpts *o = ht_qemu_object(after, id);

        g_assert_true(o && ht_number_size(ht_opts_get(o, "size"), 'B', &bytes));
        sum += bytes;
    }
    if (backend) {
        const HtOpts *o = ht_qemu_object(after, backend);

        g_assert_true(o && ht_number_size(ht_opts_get(o, "size"), 'B', &sum));
    }
    g_assert_cmpint(p->memory == HT_RECORD_PROCESS, ==, sum == 0);
    g_assert_true(!sum || sum == size_of(after));
}

/* Assert that the options in names[] and the objects did not change. */
static void check_machine(const HtQemu *before, const HtQemu *after)
{
    static const char * const names[] = {
        "type", "kernel", "initrd", "usb", "smp.cpus", "smp.maxcpus",
        "smp.sockets",
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(names); i++) {
        g_assert_cmpstr(ht_opts_get(before->machine, names[i]), ==,
                        ht_opts_get(after->machine, names[i]));
    }
    for (i = 0; i < before->objects->len; i++) {
        g_autofree char *b = ht_opts_text(before->objects->pdata[i]);
        g_autofree char *a = ht_opts_text(after->objects->pdata[i]);

        g_assert_cmpstr(a, ==, b);
    }
    /* an object that was added must not have the id of another object */
    for (i = before->objects->len; i < after->objects->len; i++) {
        const HtOpts *o = after->objects->pdata[i];

        g_assert_true(ht_qemu_object(after, ht_opts_get(o, "id")) == o);
    }
}

/*
 * Assert that only the arguments of QEMU that contain the kernel's words have
 * changed.
 */
static void check_argv(const HtQemu *before, const HtQemu *after)
{
    unsigned i;

    for (i = 0; i < before->argv->len; i++) {
        if (i != before->append_at &&
            !strstr(before->argv->pdata[i], EXTRA)) {
            g_assert_cmpstr(after->argv->pdata[i], ==,
                            before->argv->pdata[i]);
        }
    }
}

static void check_generated(const char *line, const Files *f)
{
    g_auto(GStrv) argv = words_of(line, f);
    HtRecordOptions options = { .size = HT_RECORD_SIZE };
    g_autoptr(GError) error = NULL;
    g_autoptr(HtRecordPlan) p = ht_record_plan(argv, &options, &error);
    g_autoptr(HtQemu) before = ht_qemu_parse(argv), after = NULL;
    const char *text, *now;

    g_assert_no_error(error);
    after = ht_qemu_parse(p->argv);
    text = ht_opts_get(before->machine, "append");
    now = ht_opts_get(after->machine, "append");
    if (p->given == HT_RECORD_WORDS_APPEND) {
        check_words(text ? text : "", now, p->words);
    } else {
        g_assert_cmpstr(text, ==, now);
    }
    check_machine(before, after);
    check_argv(before, after);
    check_memory(p, after);
}

static void test_generated(void)
{
    guint32 seed = g_test_rand_int();
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    Files f = make_files();
    unsigned i;

    g_test_message("seed %u", seed);
    for (i = 0; i < 5000; i++) {
        g_autofree char *line = generate(rand);

        g_test_message("%s", line);
        check_generated(line, &f);
    }
    remove_files(&f);
}

/*
 * Promise: words are added to a kernel command line by the kernel's rules
 * (lib/cmdline.c).
 */
static void test_kernel_words(void)
{
    static const struct {
        const char *before, *after;
    } merged[] = {
        { "", "W" }, { "a", "a W" }, { "a ", "a W" }, { "-- x", "W -- x" },
        { "a -- x", "a W -- x" }, { "a --", "a W --" }, { "a--b", "a--b W" },
        { "x=\"a -- b\" quiet", "x=\"a -- b\" quiet W" },
        { "\"x=a -- b\" -- c", "\"x=a -- b\" W -- c" },
        { "a \"--\" b", "a W \"--\" b" }, { "--x -- y", "--x W -- y" },
        { "x=\"a", "W x=\"a" }, { "a\t--\tb", "a\tW --\tb" },
        { "x=-- y", "x=-- y W" },
    };
    static const struct {
        const char *text;
        bool ring;
        uint64_t at;
    } rings[] = {
        { "trace_instance=a@b", true, 0 }, { "trace-instance=a@b", true, 0 },
        { "trace_instance=a@0x100:1M", true, 0x100 },
        { "trace_instance=\"a@4096:1M,x\"", true, 4096 },
        { "\"trace_instance=a@b\"", true, 0 },
        { "foo.trace_instance=a@b", false, 0 },
        { "x trace_instance=a^f@b,c y", true, 0 },
        { "trace_instance=a,b@c", false, 0 },
        { "trace_instance=a trace_instance=b@c", true, 0 },
        { "quiet -- trace_instance=a@b", false, 0 },
        { "x=\"trace_instance=a@b\"", false, 0 },
        { "x=\"y trace_instance=a@b\"", false, 0 }, { "", false, 0 },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(merged); i++) {
        g_autofree char *got = ht_kernel_words_merge(merged[i].before, "W");

        g_assert_cmpstr(got, ==, merged[i].after);
    }
    for (i = 0; i < G_N_ELEMENTS(rings); i++) {
        uint64_t at = 0;

        g_test_message("%s", rings[i].text);
        g_assert_cmpint(ht_kernel_words_ring(rings[i].text, &at), ==,
                        rings[i].ring);
        g_assert_cmphex(at, ==, rings[i].at);
    }
}

static void test_events(void)
{
    static const char * const bad[] = {
        "", ",sched", "sched,", "sched,,irq", ",", "sched irq", "sched\"",
        "a=b", "x@y", "sched;",
    };
    static const char * const unknown[] = {
        "*", "sched_wak*", "irq,sched:s*", "sche?", "s*:sched_switch", "a:*b",
    };
    g_autofree char *many = g_strnfill(2000, 'e');
    g_autoptr(GError) error = NULL;
    g_autoptr(HtRecordPlan) p = NULL, full = NULL;
    Files f = make_files();
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_null(plan(Q "|-kernel|KERNEL", &f, bad[i], &error));
        g_assert_nonnull(strstr(error->message, "--event"));
        g_clear_error(&error);
    }
    /* The kernel knows "*" only as the whole part before or after ":". */
    for (i = 0; i < G_N_ELEMENTS(unknown); i++) {
        g_assert_null(plan(Q "|-kernel|KERNEL", &f, unknown[i], &error));
        g_assert_nonnull(strstr(error->message, "GROUP:*"));
        g_clear_error(&error);
    }
    full = plan(Q "|-kernel|KERNEL|-append|mine", &f, many, &error);
    g_assert_no_error(error);
    g_assert_cmpint(full->given, ==, HT_RECORD_WORDS_NONE);
    g_assert_null(full->words);
    g_assert_cmpstr(full->argv[4], ==, "mine");
    p = plan(Q "|-kernel|KERNEL", &f, "sched:*,*:a,*:*,irq", &error);
    g_assert_no_error(error);
    g_assert_cmpstr(p->words, ==, "reserve_mem=16M:2M:ht trace_instance="
                    "boot_map@ht,sched:*,*:a,*:*,irq,task,module:module_load,"
                    "module:module_free");
    remove_files(&f);
}

/*
 * Promise: names of events or groups of system calls, which need the main
 * buffer, are recognized in a list, and similar names are not.
 */
static void test_syscalls(void)
{
    static const char * const some[] = {
        "syscalls", "raw_syscalls", "sched,syscalls", "raw_syscalls,irq",
        "syscalls:sys_enter_read", "raw_syscalls:*", "sys_enter", "sys_exit",
        "sys_exit_openat", "irq,raw_syscalls:sys_enter,task",
    };
    static const char * const none[] = {
        "", "sched", "sched,irq", "task:task_newtask", "syscalls_other",
        "nfs:sys", "xsys_enter",
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(some); i++) {
        g_test_message("%s", some[i]);
        g_assert_true(ht_plan_has_syscalls(some[i]));
    }
    for (i = 0; i < G_N_ELEMENTS(none); i++) {
        g_test_message("%s", none[i]);
        g_assert_false(ht_plan_has_syscalls(none[i]));
    }
    g_assert_false(ht_plan_has_syscalls(NULL));
}

static void test_flags(void)
{
    static const struct {
        const char *args;
        bool terminal, query, daemonize;
    } cases[] = {
        { Q "|-nographic", true, false, false },
        { Q "|-serial|mon:stdio", true, false, false },
        { Q "|-chardev|stdio,id=c", true, false, false },
        { Q "|-display|curses", true, false, false },
        { Q "|-serial|file:x|-display|none", false, false, false },
        { Q "|x", false, false, false },
        { Q "|-append|-daemonize", false, false, false },
        { Q "|--daemonize", false, false, true },
        { Q "|-version", false, true, false },
        { Q "|-M|help", 0, 1, 0 }, { Q "|-smp|help", 0, 1, 0 },
        { Q "|-device|virtio-net-pci,help", false, true, false },
        { Q "|-M|none,accel=kvm:tcg", false, true, false },
        { Q "|-name|help", false, false, false },
    };
    Files f = { "", "", "" };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        GError *error = NULL;
        g_autoptr(HtRecordPlan) p = plan(cases[i].args, &f, NULL, &error);

        g_test_message("%s", cases[i].args);
        g_assert_no_error(error);
        g_assert_cmpint(p->uses_terminal, ==, cases[i].terminal);
        g_assert_cmpint(p->query, ==, cases[i].query);
        g_assert_cmpint(p->daemonize, ==, cases[i].daemonize);
    }
}

static void test_values(void)
{
    static const struct {
        const char *list, *implied, *name, *value;
    } opts[] = {
        { "pc,accel=tcg", "type", "type", "pc" },
        { "pc,accel=tcg", "type", "accel", "tcg" },
        { "a=1,b=2,a=3", NULL, "a", "3" }, { "a=x,,y,b=z", NULL, "a", "x,y" },
        { "a=x,,y,b=z", NULL, "b", "z" }, { "ab=1", NULL, "a", NULL },
        { "a=1", "type", "type", NULL }, { "x,y", "i", "i", "x" },
        { "x,y", "i", "y", "on" }, { "a=1,nob", NULL, "b", "off" },
        { "", "i", "i", NULL }, { "a=b=c", NULL, "a", "b=c" },
        { "x,,y,b=1", "i", "i", "x,y" }, { "a=1,", NULL, "a", "1" },
        { "{\"a\": {\"b\": [1, \"x\"]}}", "i", "a.b.1", "x" },
        { "{'a': true, 'b': 'it\\'s', 'c': '\"'}", "i", "a", "on" },
        { "{'a': true, 'b': 'it\\'s', 'c': '\"'}", "i", "b", "it's" },
        { "{'a': true, 'b': 'it\\'s', 'c': '\"'}", "i", "c", "\"" },
    };
    static const struct {
        const char *text;
        uint64_t bytes;
    } sizes[] = {
        { "512", 512ull << 20 }, { "1G", 1ull << 30 }, { "1.5G", 3ull << 29 },
        { "64k", 64 << 10 }, { "0", 0 }, { "-1", 0 }, { "x", 0 },
        { "1X", 0 }, { "1GB", 0 }, { "1e30", 0 }, { "nan", 0 }, { "", 0 },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(opts); i++) {
        g_autoptr(HtOpts) o = ht_opts_new();

        g_test_message("%s: %s", opts[i].list, opts[i].name);
        g_assert_true(ht_opts_parse(o, opts[i].list, opts[i].implied));
        g_assert_cmpstr(ht_opts_get(o, opts[i].name), ==, opts[i].value);
    }
    for (i = 0; i < G_N_ELEMENTS(sizes); i++) {
        uint64_t bytes = 0;

        g_assert_cmpint(ht_number_size(sizes[i].text, 'M', &bytes), ==,
                        sizes[i].bytes != 0);
        g_assert_cmpuint(bytes, ==, sizes[i].bytes);
    }
}

static const struct {
    const char *option;
    bool graph;
    /* words that are expected; NULL: the option is refused */
    const char *words;
} tracers[] = {
    { "acpi_init", true, "ftrace=function_graph "
      "ftrace_graph_filter=acpi_init" },
    { "a,b*,depth=3", true, "ftrace=function_graph ftrace_graph_filter=a,b* "
      "ftrace_graph_max_depth=3" },
    { "depth=50,a.isra.0", true, "ftrace=function_graph "
      "ftrace_graph_filter=a.isra.0 ftrace_graph_max_depth=50" },
    { "a,b?_c", false, "ftrace=function ftrace_filter=a,b?_c" },
    { "", true, NULL }, { "", false, NULL }, { "a,,b", true, NULL },
    { "a,", false, NULL }, { "depth=3", true, NULL },
    { "a,depth=0", true, NULL }, { "a,depth=51", true, NULL },
    { "a,depth=", true, NULL }, { "a,depth=3", false, NULL },
    { "a b", true, NULL }, { "a\"b", true, NULL }, { "!a", false, NULL },
};

/* The ring's default size depends on the number of processors and the RAM. */
static void test_size(void)
{
    static const struct { const char *args, *size; } cases[] = {
        { "-m|1G|-smp|8", "16M" }, { "-m|1G|-smp|9", "32M" },
        { "-m|1G|-smp|2,maxcpus=64", "64M" }, { "-m|4G|-smp|64", "128M" },
        { "-m|256|-smp|64", "16M" }, { "-m|64G|-smp|300", "1024M" },
        { "-m|64G|-smp|sockets=3,cores=5,threads=2", "64M" },
        { "-m|what|-smp|64", "16M" }, { "-smp|64", "16M" },
    };
    Files f = make_files();
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *line =
            g_strconcat(Q "|-kernel|KERNEL|", cases[i].args, NULL);
        g_autofree char *words =
            g_strconcat("reserve_mem=", cases[i].size, ":2M:ht ", NULL);
        g_auto(GStrv) argv = words_of(line, &f);
        HtRecordOptions options = { 0 };
        g_autoptr(HtRecordPlan) p = ht_record_plan(argv, &options, NULL);

        g_assert_true(g_str_has_prefix(p->words, words));
    }
    remove_files(&f);
}

/*
 * Options for functions become words of the kernel's command line, after those
 * of the main buffer. A value that could add a word of its own, such as a value
 * with a space, is refused.
 */
static void test_functions(void)
{
    Files files = make_files();
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(tracers); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HtRecordPlan) p = NULL;
        g_auto(GStrv) before = words_of(Q "|-smp|4|-kernel|KERNEL", &files);
        g_autofree char *words = NULL, *all = NULL;
        HtRecordOptions options = {
            .size = HT_RECORD_SIZE, .main_buffer = true,
        };
        HtRecordFunctions f;

        g_test_message("%s", tracers[i].option);
        if (!tracers[i].words) {
            g_assert_false(ht_record_functions_parse(
                &f, tracers[i].option, tracers[i].graph, &error));
            g_assert_nonnull(error);
            continue;
        }
        g_assert_true(ht_record_functions_parse(
            &f, tracers[i].option, tracers[i].graph, &error));
        words = ht_record_functions_words(&f);
        g_assert_cmpstr(words, ==, tracers[i].words);
        options.tracer = words;
        p = ht_record_plan(before, &options, &error);
        g_assert_no_error(error);
        all = g_strconcat("trace_event=" EVENTS " trace_buf_size=4096K "
                          "trace_clock=local ", words, NULL);
        g_assert_cmpstr(p->words, ==, all);
        ht_record_functions_clear(&f);
    }
    remove_files(&files);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/record-plan/rows", test_rows);
    g_test_add_func("/record-plan/generated", test_generated);
    g_test_add_func("/record-plan/kernel-words", test_kernel_words);
    g_test_add_func("/record-plan/events", test_events);
    g_test_add_func("/record-plan/syscalls", test_syscalls);
    g_test_add_func("/record-plan/flags", test_flags);
    g_test_add_func("/record-plan/functions", test_functions);
    g_test_add_func("/record-plan/values", test_values);
    g_test_add_func("/record-plan/size", test_size);
    return g_test_run();
}
