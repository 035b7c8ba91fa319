/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: print summaries and likely reasons, and choose the exit
 * status
 */
#include "hypertrace/base.h"
#include <sys/wait.h>

#include "cli/command.h"
#include "cli/number.h"
#include "record/record-run.h"

bool ht_run_is_over(const HtRecordRun *run)
{
    return run->timed_out || run->matched || run->too_late;
}

/*
 * Append likely reasons why the main buffer was not found. Its search needs the
 * kernel in the guest's memory, but no words on the kernel's command line.
 */
static void kernel_reasons(const HtRecordRun *run, GString *out)
{
    const char *why = ht_session_why(run->session);

    g_string_append(out, "the guest's kernel was not found in its memory after "
                    "30 s. Likely reasons:\n"
                    "- the guest boots another kernel than the image that was "
                    "read: give it with --kernel FILE\n");
    if (why) {
        g_string_append_printf(out, "- %s\n", why);
    }
}

static void ring_reasons(const HtRecordRun *run, GString *out)
{
    const HtRecordPlan *p = run->r->plan;

    g_string_append(out, "no ring of events after 30 s. Likely reasons:\n");
    if (!p || p->given == HT_RECORD_WORDS_NONE) {
        g_string_append(out, "- the kernel's command line has no words for a "
                        "ring\n");
    } else if (p->given == HT_RECORD_WORDS_LOADER) {
        g_string_append_printf(out, "- the boot loader did not give the kernel "
                               "these words: %s\n", p->words);
    }
    if (p && p->given == HT_RECORD_WORDS_SMBIOS) {
        g_string_append(out, "- the stub of the unified kernel image is older "
                        "than systemd 254\n");
    }
    if (!run->r->kernel) {
        g_string_append(out, "- the kernel is older than 6.12, or built "
                        "without CONFIG_TRACING\n");
    }
    g_string_append(out, "- the kernel is locked down "
                    "(lockdown=confidentiality)\n");
}

void ht_run_print_reasons(const HtRecordRun *run)
{
    const HtRecordPlan *p = run->r->plan;
    g_autoptr(GString) text = g_string_new(NULL);

    if (run->r->buffer == HT_TRACE_BUFFER_MAIN) {
        kernel_reasons(run, text);
    } else {
        ring_reasons(run, text);
    }
    if (p && p->memory == HT_RECORD_PROCESS && !run->rest) {
        g_string_append(text, "- no process was found whose memory can be "
                        "read: sudo and containers need 'sudo hypertrace "
                        "record'\n");
    }
    g_string_append(text, "- the guest is still in its firmware or boot "
                    "loader, or it does not run Linux");
    ht_notice("%s", text->str);
}

static void append_losses(GString *out, const HtSessionStats *n, bool stopped)
{
    const char *next = "";

    if (n->gaps) {
        g_autofree char *lost = g_strdup_printf("about %" PRIu64, n->lost);

        g_string_append_printf(out, "%s lost in %" PRIu64 " gap%s: try a "
                               "larger --size or fewer events",
                               n->lost ? lost : "an unknown number", n->gaps,
                               ht_number_s(n->gaps));
        next = "; ";
    }
    if (n->late) {
        g_string_append_printf(out, "%sthe first ones of %" PRIu64
                               " processor%s were overwritten before they "
                               "could be read", next, n->late,
                               ht_number_s(n->late));
        next = "; ";
    }
    if (n->errors) {
        g_string_append_printf(out, "%sthe memory could not be read %" PRIu64
                               " time%s", next, n->errors,
                               ht_number_s(n->errors));
        next = "; ";
    }
    if (n->cut) {
        g_string_append_printf(out, "%sevents of some processors are missing: "
                               "at most %u processors are recorded, and rings "
                               "of %u sub-buffers", next, HT_FT_CPUS_MAX,
                               HT_FT_SUBBUFS_MAX);
        next = "; ";
    }
    if (stopped) {
        g_string_append_printf(out, "%sthe rest is missing", next);
    } else if (!*next) {
        g_string_append(out, "none lost");
    }
}

static bool ended_well(const HtRecordRun *run, int status)
{
    return ht_run_is_over(run) || (WIFEXITED(status) && !WEXITSTATUS(status));
}

void ht_run_print_summary(const HtRecordRun *run, int status)
{
    HtSessionStats n = ht_session_stats(run->session);
    const HtRecordPlan *p = run->r->plan;
    g_autoptr(GString) text = g_string_new(NULL);

    if (run->r->found) {
        return;
    }
    if (n.found && !n.events) {
        ht_error("a ring was found in the guest's memory, but it stayed empty. "
                 "Likely reasons: the kernel is locked down "
                 "(lockdown=confidentiality), or no event is switched on, or "
                 "tracing is off (tracing_on is 0)");
    } else if (n.found && !run->r->quiet) {
        g_string_append_printf(text, "%" PRIu64 " event%s", n.events,
                               ht_number_s(n.events));
        if (!run->flight) {
            g_string_append_printf(text, ", %.1f MB in %s", n.bytes / 1e6,
                                   run->r->dir);
        }
        g_string_append(text, "; ");
        append_losses(text, &n, run->stopped);
        ht_notice("%s", text->str);
    } else if (!n.found && n.logged) {
        ht_error("no ring of events was found in the guest's memory: only the "
                 "kernel's log was recorded, %" PRIu64 " line%s in %s",
                 n.logged, ht_number_s(n.logged), run->r->dir);
    } else if (!n.found && !ended_well(run, status)) {
        /* QEMU itself usually has printed why it ended. */
        ht_error("QEMU ended before the guest's kernel traced anything; "
                 "nothing was recorded");
    } else if (!n.found && run->r->buffer == HT_TRACE_BUFFER_MAIN) {
        const char *why = ht_session_why(run->session);

        ht_error("the guest's kernel was not found in its memory, so nothing "
                 "was recorded%s%s", why ? ": " : "", why ? why : "");
    } else if (!n.found) {
        ht_error("no ring of events was found in the guest's memory, so "
                 "nothing was recorded: %s%s",
                 !p || p->given == HT_RECORD_WORDS_NONE ?
                 "the kernel's command line needs words for a ring; see "
                 "hypertrace-record(1)" :
                 p->given == HT_RECORD_WORDS_LOADER ?
                 "the boot loader must give the kernel " :
                 "the guest must boot Linux 6.12 or later, or a kernel "
                 "with BTF and KALLSYMS_ALL whose image is given",
                 p && p->given == HT_RECORD_WORDS_LOADER ? p->words : "");
    }
}

static void print_no_match(const HtMatch *until, const char *end)
{
    uint64_t skipped = ht_match_skipped(until);

    if (skipped) {
        ht_error("--until: there was no such event: %s; events before the "
                 "formats of events were found: %" PRIu64, end, skipped);
    } else {
        ht_error("--until: there was no such %s: %s",
                 ht_match_is_log(until) ? "line" : "event", end);
    }
}

void ht_run_print_end(const HtRecordRun *run, const char *end)
{
    if (run->r->found) {
        return;
    }
    if (run->r->until && !ht_match_count(run->r->until)) {
        print_no_match(run->r->until, end);
    } else if (run->r->until && !run->matched && !run->r->quiet) {
        /*
         * The last polls, after the recording had ended for another reason,
         * found the event of --until.
         */
        ht_notice("the recording ended: %s, after --until: %s", end,
                  ht_match_text(run->r->until));
    } else if (ht_run_is_over(run) && !run->r->quiet) {
        ht_notice("the recording ended: %s", end);
    }
}

char *ht_run_describe_end(const HtRecordRun *run, int status, bool signal)
{
    if (run->matched) {
        return g_strdup_printf("--until: %s", ht_match_text(run->r->until));
    }
    if (run->too_late) {
        return g_strdup("the recording was full or failed before it");
    }
    if (run->timed_out) {
        return g_strdup("the time of --for was over");
    }
    if (!run->child) {
        return g_strdup(signal || run->gave_up || run->r->found ?
                        "the recorder was stopped" : "QEMU ended");
    }
    if (WIFSIGNALED(status)) {
        return g_strdup_printf("QEMU was killed by signal %d (%s)",
                               WTERMSIG(status), strsignal(WTERMSIG(status)));
    }
    return g_strdup_printf("QEMU ended with status %d", WEXITSTATUS(status));
}

int ht_run_exit_status(const HtRecordRun *run, int status)
{
    HtSessionStats n = ht_session_stats(run->session);
    bool complete = (n.events || run->programs.events) && !run->stopped &&
                    !n.cut && !run->programs.why &&
                    (!run->r->until || ht_match_count(run->r->until));

    if (!ended_well(run, status)) {
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
               WEXITSTATUS(status);
    }
    return complete || run->r->as_qemu ? HT_EXIT_OK : HT_EXIT_NOTHING;
}
