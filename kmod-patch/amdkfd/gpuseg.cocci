// SPDX-License-Identifier: GPL-2.0-only
//
// Hooks of gpuseg in amdkfd. One semantic patch for all kernels that we build for (6.1, 6.12): it names
// what it must find, not the lines around it. apply checks how often each rule must have matched.

// The state that the driver's structures carry for us.

@header@
@@
 #include <kgd_kfd_interface.h>
+#include "kfd_gpuseg.h"

@properties@
@@
 struct queue_properties {
 ...
 bool is_evicted;
+bool is_gpuseg_held;
 ...
 };

@queue_state@
@@
 struct queue {
 ...
 struct queue_properties properties;
+struct kfd_gpuseg_queue gpuseg;
 ...
 };

@device_state@
@@
 struct device_queue_manager {
 ...
 bool sched_running;
+struct kfd_gpuseg_dev gpuseg;
 ...
 };

// A held queue is not active, wherever the driver asks.

@active@
expression Q;
@@
-QUEUE_IS_ACTIVE(Q)
+KFD_GPUSEG_MAY_RUN(Q)

// A queue starts held if its process is. The lock is not dropped between here and the list.

@creation@
identifier fn =~ "^create_queue_(no)?cpsch$";
identifier dqm, q, qpd, mqd_mgr;
parameter list P;
expression QD;
@@
 fn(struct device_queue_manager *dqm, struct queue *q, struct qcm_process_device *qpd, P)
 {
 <+...
+kfd_gpuseg_queue_init(dqm, qpd, q);
 if (QD)
 mqd_mgr->restore_mqd(...);
 else
 mqd_mgr->init_mqd(...);
 ...+>
 }

// Devices are added and removed.

@device_comes@
identifier dqm;
@@
 device_queue_manager_init(...)
 {
 <+...
 if (!dqm->ops.initialize(dqm)) {
 ...
+kfd_gpuseg_dqm_add(dqm);
 return dqm;
 }
 ...+>
 }

@device_comes_short@
identifier dqm;
@@
 device_queue_manager_init(...)
 {
 <+...
-if (!dqm->ops.initialize(dqm))
+if (!dqm->ops.initialize(dqm)) {
+kfd_gpuseg_dqm_add(dqm);
 return dqm;
+}
 ...+>
 }

@device_goes@
identifier dqm;
@@
 void device_queue_manager_uninit(struct device_queue_manager *dqm)
 {
+kfd_gpuseg_dqm_remove(dqm);
 ...
 }

// The module is loaded and unloaded.

@module_comes@
@@
 kfd_init(...)
 {
 ...
 kfd_procfs_init();
+kfd_gpuseg_init();
 ...
 }

@module_goes@
@@
 kfd_exit(...)
 {
+kfd_gpuseg_exit();
 ...
 }

// Shorter waits between two reads of an HQD that is being unloaded.

@poll@
identifier fn =~ "hqd_(sdma_)?destroy(_v[0-9_]+)?$";
parameter list P;
@@
 fn(P)
 {
+unsigned int gpuseg_polls = 0;
 <+...
-usleep_range(500, 1000);
+kfd_gpuseg_poll_wait(&gpuseg_polls);
 ...+>
 }

@poll_header depends on poll@
@@
 #include "amdgpu_amdkfd.h"
+#include "kfd_gpuseg_poll.h"
