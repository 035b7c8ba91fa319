/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: migration, savevm and loadvm
 */
#ifndef HW_HYPERTRACE_MIGRATION_H
#define HW_HYPERTRACE_MIGRATION_H

typedef struct HypertraceDevice HypertraceDevice;
typedef struct HtMigration HtMigration;

/* In VirtioDeviceClass.vmsd */
extern const struct VMStateDescription ht_vmstate_state;

/* All: Context: BQL */
void ht_migration_realize(HypertraceDevice *dev);
void ht_migration_unrealize(HypertraceDevice *dev);
/* Queues are reset: resume loaded streams, and consume their content */
void ht_migration_reset(HypertraceDevice *dev);
/* The VM runs: resume loaded streams */
void ht_migration_vm_start(HypertraceDevice *dev);

#endif /* HW_HYPERTRACE_MIGRATION_H */
