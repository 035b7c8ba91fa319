/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: decide which classes are on, and keep the text of settings
 * (NAME=VALUE) that emitters in the guest read
 *
 * A class is on if the list of patterns selects its name, and a sink wants the
 * class.  HtEnableConfig.write writes the guest's enable byte of a class.  The
 * guest reads the byte without memory ordering, so it may see a change late.
 * Until then it emits events that no sink wants, which the sinks drop, or does
 * not emit events that a sink wants.
 *
 * Context: the caller serializes all calls for one HtEnable.
 */
#ifndef HYPERTRACE_ENABLE_H
#define HYPERTRACE_ENABLE_H

#include "hypertrace/class.h"
#include "hypertrace/pattern.h"

/* Interval of polls while any class is off only because no sink wants it */
#define HT_ENABLE_OFF_MS 20
/*
 * Interval of polls while all classes that the patterns select are on, except
 * during HT_ENABLE_QUICK_MS.  If the last sink stops wanting a class, the class
 * stays on until the next poll, and the sinks drop its events.
 */
#define HT_ENABLE_ON_MS 5000
/*
 * Duration for which polls are HT_ENABLE_OFF_MS apart after a poll that found a
 * new class, or that switched a class on or off
 */
#define HT_ENABLE_QUICK_MS 1000

/**
 * HtEnableConfig: callbacks of the owner
 * @classes: the table of classes
 * @wants: return whether a sink wants a class
 * @write: write the enable byte of a class that was switched on or off
 * @changed: notify the guest that enable bytes or settings have changed; @seq
 *           is the new ht_caps.enable_seq
 * @opaque: first argument of the callbacks
 */
typedef struct HtEnableConfig {
    const HtClassTable *classes;
    bool (*wants)(void *opaque, const HtClass *c);
    void (*write)(void *opaque, const HtClass *c, bool on);
    void (*changed)(void *opaque, uint32_t seq);
    void *opaque;
} HtEnableConfig;

/**
 * HtEnable: state of one guest; zeroed memory has no class and no settings
 * @cfg: set by ht_enable_init()
 * @events: the list of patterns; NULL: all classes
 * @settings: text for emitters in the guest; NULL: none
 * @patterns: @events, parsed
 * @seq: ht_caps.enable_seq; the owner may set it when it loads a guest
 * @count: number of classes that are decided, of ids 1 to @count
 * @polled: @count at the last ht_enable_poll()
 * @quick_until_ms: until this time, polls are HT_ENABLE_OFF_MS apart
 * @match: by id: the patterns select the class
 * @on: by id: the class is on
 */
typedef struct HtEnable {
    HtEnableConfig cfg;
    char *events;
    char *settings;
    HtPatterns *patterns;
    uint32_t seq;
    uint32_t count;
    uint32_t polled;
    int64_t quick_until_ms;
    bool match[HT_CLASSES_MAX + 1];
    bool on[HT_CLASSES_MAX + 1];
} HtEnable;

/**
 * ht_enable_init: initialize the state; no class of the table is decided yet
 * @e: zeroed memory, in which patterns and settings may be set already
 * @cfg: copied
 */
void ht_enable_init(HtEnable *e, const HtEnableConfig *cfg);
void ht_enable_destroy(HtEnable *e);

/**
 * ht_enable_register: decide about a class that the guest registers
 * @e: the state
 * @c: the class; it may have been registered before
 *
 * First decides about each undecided class with a lower id.  If one of these is
 * switched on, or if @c was registered before and its byte changes,
 * @cfg.changed notifies the guest.  The driver that registers a new class gets
 * the value in the reply.
 *
 * Returns: the byte that the guest sees
 */
uint8_t ht_enable_register(HtEnable *e, const HtClass *c);

/**
 * ht_enable_decide: decide about all classes again, and notify the guest if a
 * byte changes
 * @e: the state
 *
 * Returns: true if a byte changed
 */
bool ht_enable_decide(HtEnable *e);

/**
 * ht_enable_poll: call ht_enable_decide(), to ask the sinks which classes they
 * want now
 * @e: the state
 * @now_ms: the present time in ms
 *
 * Returns: the time of the next poll in ms.  If classes are added before, the
 * caller must poll HT_ENABLE_OFF_MS after that instead.
 */
int64_t ht_enable_poll(HtEnable *e, int64_t now_ms);

/*
 * ht_enable_tell: increment enable_seq and call HtEnableConfig.changed.  The
 * guest's driver then reads the enable bytes and the settings again.
 */
void ht_enable_tell(HtEnable *e);

/**
 * ht_enable_set_events: set the list of patterns; enable bytes do not change
 * before ht_enable_decide(), unless the guest registers a class
 * @e: the state
 * @events: the list, or NULL for all classes
 * @why: set to the reason if the list is invalid, for g_free()
 *
 * Returns: false if the list is invalid; nothing changes then
 */
bool ht_enable_set_events(HtEnable *e, const char *events, char **why);

/**
 * ht_enable_set_settings: set the settings for emitters in the guest
 * @e: the state
 * @settings: words NAME=VALUE, separated by single blanks, up to
 *            HT_SETTINGS_MAX bytes
 * @why: set to the reason if they are invalid, for g_free()
 *
 * Does not tell the guest: see ht_enable_tell().
 *
 * Returns: false if the settings are invalid; nothing changes then
 */
bool ht_enable_set_settings(HtEnable *e, const char *settings, char **why);

#endif /* HYPERTRACE_ENABLE_H */
