// SPDX-License-Identifier: GPL-2.0-only
/*
 * A simulated amdgpu below the real, patched queue manager of KFD.
 *
 * This file is linked with kfd_device_queue_manager.c, the MQD managers and gpuseg
 * itself, exactly as they go into the amdgpu module. It supplies what those call:
 * kfd2kgd functions, MES functions and packets that end in tables instead of
 * registers, and that notice what no driver may do to hardware. /dev/fake-kfd gives
 * processes queues the way KFD does: under the process's mutex, with the queue IDs
 * reused, torn down when the process ends.
 *
 * No AMD hardware is involved, and no time measured here says anything about it.
 */
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/vmalloc.h>

#include "kfd_priv.h"
#include "kfd_device_queue_manager.h"
#include "kfd_kernel_queue.h"
#include "kfd_mqd_manager.h"
#include "amdgpu_amdkfd.h"
#include "amdgpu_reset.h"
#include "kfd_gpuseg.h"
#include "fake_amdgpu.h"

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#define SINCE_6_5 1
#include "kfd_debug.h"
typedef struct kfd_node fake_node;
#define INST , uint32_t inst
#define NODE_KFD(node) ((node)->kfd)
#else
#define SINCE_6_5 0
typedef struct kfd_dev fake_node;
#define INST
#define NODE_KFD(node) (node)
#endif

#define PIPES 4
#define QUEUES_PER_PIPE 8
#define SDMA_ENGINES 2
#define SDMA_QUEUES 8
#define MAX_MAPPED 256

struct fake_device {
	fake_node *node;
	struct amdgpu_device *adev;
	struct amdgpu_reset_domain *domain;
	struct kernel_queue hiq;
	struct queue hiq_queue;
	struct work_struct reset_work;

	/* The hardware, under lock. */
	spinlock_t lock;
	void *hqd[PIPES][QUEUES_PER_PIPE];
	void *sdma[SDMA_QUEUES * SDMA_ENGINES];
	u64 mapped[MAX_MAPPED];		/* serials in the runlist, or doorbells that MES has */
	unsigned int n_mapped;
	unsigned int rule_breaks;
	unsigned int runlists;
	unsigned int resets;
	struct fake_fault fault;
};

/* One process as KFD knows it. */
struct fake_kfd_process {
	struct list_head node;
	struct kfd_process kfd;
	struct kfd_process_device pdds[FAKE_GPUS];
	struct drm_file drm;
	struct amdgpu_fpriv *fpriv;
	struct queue *queues[KFD_MAX_NUM_OF_QUEUES_PER_PROCESS];
};

static struct fake_device fake_devices[FAKE_GPUS];
static struct device *fake_parent;
static DEFINE_MUTEX(fake_processes_lock);	/* before a process's mutex, before the DQM lock */
static LIST_HEAD(fake_processes);
static atomic_t fake_allocations = ATOMIC_INIT(0);
static atomic_t fake_live_processes = ATOMIC_INIT(0);

/* Module parameters and such of amdgpu. */
int sched_policy;
int max_num_of_queues_per_device = 4096;
int halt_if_hws_hang;
int queue_preemption_timeout_ms = 50;
bool debug_evictions;
#if SINCE_6_5
int amdgpu_emu_mode;
uint amdgpu_sdma_phase_quantum = 32;
#else
uint amdgpu_sdma_phase_quantum = 32;
#endif

static struct fake_device *of_adev(struct amdgpu_device *adev)
{
	int i;

	for (i = 0; i < FAKE_GPUS; i++)
		if (fake_devices[i].adev == adev)
			return &fake_devices[i];
	return NULL;
}

#define breaks_rule(device, ...)					\
	do {								\
		(device)->rule_breaks++;				\
		pr_err("fake-kfd: " __VA_ARGS__);			\
	} while (0)

static bool fault_due(u32 *count)
{
	if (!*count)
		return false;
	(*count)--;
	return true;
}

/* ---------------------------------------------------------------- the hardware: NO_HWS */

static int fake_hqd_load(struct amdgpu_device *adev, void *mqd, uint32_t pipe_id, uint32_t queue_id,
			 uint32_t __user *wptr, uint32_t wptr_shift, uint32_t wptr_mask,
			 struct mm_struct *mm INST)
{
	struct fake_device *device = of_adev(adev);
	int r = 0;

	spin_lock(&device->lock);
	if (fault_due(&device->fault.load_failures))
		r = -EIO;
	else if (device->hqd[pipe_id][queue_id])
		breaks_rule(device, "MQD loaded into HQD %u.%u, which is in use\n", pipe_id, queue_id);
	else
		device->hqd[pipe_id][queue_id] = mqd;
	spin_unlock(&device->lock);
	return r;
}

static int fake_hqd_destroy(struct amdgpu_device *adev, void *mqd, enum kfd_preempt_type type,
			    unsigned int timeout, uint32_t pipe_id, uint32_t queue_id INST)
{
	struct fake_device *device = of_adev(adev);
	int r = 0;

	if (device->fault.destroy_us)
		usleep_range(device->fault.destroy_us, device->fault.destroy_us + 100);
	spin_lock(&device->lock);
	if (type != KFD_PREEMPT_TYPE_WAVEFRONT_RESET && fault_due(&device->fault.destroy_timeouts)) {
		r = -ETIME;
	} else {
		if (type != KFD_PREEMPT_TYPE_WAVEFRONT_RESET && fault_due(&device->fault.destroy_late))
			r = -ETIME;
		if (device->hqd[pipe_id][queue_id] && device->hqd[pipe_id][queue_id] != mqd)
			breaks_rule(device, "HQD %u.%u unloaded as another queue's\n", pipe_id, queue_id);
		device->hqd[pipe_id][queue_id] = NULL;
	}
	spin_unlock(&device->lock);
	return r;
}

static int fake_hqd_sdma_load(struct amdgpu_device *adev, void *mqd, uint32_t __user *wptr,
			      struct mm_struct *mm)
{
	struct fake_device *device = of_adev(adev);
	uint64_t __user *wptr64 = (uint64_t __user *)wptr;
	u64 value = 0;
	int i, free = -1;

	/* The rule for which queues are loaded on a kernel thread. */
	if (!read_user_wptr(mm, wptr64, value) || value != 0x5157505452u) {
		spin_lock(&device->lock);
		breaks_rule(device, "SDMA queue loaded without its write pointer (%llx)\n", value);
		spin_unlock(&device->lock);
	}
	spin_lock(&device->lock);
	for (i = 0; i < ARRAY_SIZE(device->sdma); i++) {
		if (device->sdma[i] == mqd)
			breaks_rule(device, "SDMA queue loaded twice\n");
		if (!device->sdma[i])
			free = i;
	}
	if (free < 0)
		breaks_rule(device, "more SDMA queues loaded than there are\n");
	else
		device->sdma[free] = mqd;
	spin_unlock(&device->lock);
	return 0;
}

static int fake_hqd_sdma_destroy(struct amdgpu_device *adev, void *mqd, unsigned int timeout)
{
	struct fake_device *device = of_adev(adev);
	int i;

	spin_lock(&device->lock);
	for (i = 0; i < ARRAY_SIZE(device->sdma); i++)
		if (device->sdma[i] == mqd)
			device->sdma[i] = NULL;
	spin_unlock(&device->lock);
	return 0;
}

static void fake_program_sh_mem_settings(struct amdgpu_device *adev, uint32_t vmid, uint32_t config,
					 uint32_t ape1_base, uint32_t ape1_limit, uint32_t bases INST)
{
}

static int fake_set_pasid_vmid_mapping(struct amdgpu_device *adev, u32 pasid, unsigned int vmid INST)
{
	return 0;
}

static int fake_init_interrupts(struct amdgpu_device *adev, uint32_t pipe_id INST)
{
	return 0;
}

static void fake_set_vm_context_page_table_base(struct amdgpu_device *adev, uint32_t vmid, uint64_t base)
{
}

static const struct kfd2kgd_calls fake_kfd2kgd = {
	.program_sh_mem_settings = fake_program_sh_mem_settings,
	.set_pasid_vmid_mapping = fake_set_pasid_vmid_mapping,
	.init_interrupts = fake_init_interrupts,
	.hqd_load = fake_hqd_load,
	.hqd_destroy = fake_hqd_destroy,
	.hqd_sdma_load = fake_hqd_sdma_load,
	.hqd_sdma_destroy = fake_hqd_sdma_destroy,
	.set_vm_context_page_table_base = fake_set_vm_context_page_table_base,
};

/* ------------------------------------------------------------------- the hardware: HWS */

int pm_init(struct packet_manager *pm, struct device_queue_manager *dqm)
{
	struct fake_device *device = of_adev(dqm->dev->adev);

	pm->dqm = dqm;
	pm->priv_queue = &device->hiq;
	return 0;
}

#if SINCE_6_5
void pm_uninit(struct packet_manager *pm)
#else
void pm_uninit(struct packet_manager *pm, bool hanging)
#endif
{
}

int pm_send_set_resources(struct packet_manager *pm, struct scheduling_resources *res)
{
	return 0;
}

/* The real one maps each queue that is active; so does this. */
int pm_send_runlist(struct packet_manager *pm, struct list_head *dqm_queues)
{
	struct fake_device *device = of_adev(pm->dqm->dev->adev);
	struct device_process_node *node;
	struct queue *q;

	spin_lock(&device->lock);
	if (device->n_mapped)
		breaks_rule(device, "runlist sent while one is mapped\n");
	device->n_mapped = 0;
	device->runlists++;
	list_for_each_entry(node, dqm_queues, list)
		list_for_each_entry(q, &node->qpd->queues_list, list)
			if (q->properties.is_active && device->n_mapped < MAX_MAPPED)
				device->mapped[device->n_mapped++] = q->gpuseg.serial;
	spin_unlock(&device->lock);
	return 0;
}

int pm_send_unmap_queue(struct packet_manager *pm, enum kfd_unmap_queues_filter mode,
			uint32_t filter_param, bool reset)
{
	struct fake_device *device = of_adev(pm->dqm->dev->adev);

	if (device->fault.destroy_us)
		usleep_range(device->fault.destroy_us, device->fault.destroy_us + 100);
	spin_lock(&device->lock);
	if (!device->fault.fence_losses)
		device->n_mapped = 0;
	spin_unlock(&device->lock);
	return 0;
}

int pm_send_query_status(struct packet_manager *pm, uint64_t fence_address, uint64_t fence_value)
{
	struct fake_device *device = of_adev(pm->dqm->dev->adev);

	spin_lock(&device->lock);
	if (!fault_due(&device->fault.fence_losses))
		WRITE_ONCE(*pm->dqm->fence_addr, fence_value);
	spin_unlock(&device->lock);
	return 0;
}

void pm_release_ib(struct packet_manager *pm)
{
}

int pm_debugfs_hang_hws(struct packet_manager *pm)
{
	return -EOPNOTSUPP;
}

/* ------------------------------------------------------------------- the hardware: MES */

static int fake_mes_find(struct fake_device *device, u32 doorbell)
{
	unsigned int i;

	for (i = 0; i < device->n_mapped; i++)
		if (device->mapped[i] == doorbell)
			return i;
	return -1;
}

static int fake_add_hw_queue(struct amdgpu_mes *mes, struct mes_add_queue_input *input)
{
	struct fake_device *device = of_adev(container_of(mes, struct amdgpu_device, mes));
	int r = 0;

	spin_lock(&device->lock);
	if (fault_due(&device->fault.mes_failures))
		r = -EIO;
	else if (fake_mes_find(device, input->doorbell_offset) >= 0 || device->n_mapped >= MAX_MAPPED)
		breaks_rule(device, "MES: queue added twice, doorbell %x\n", input->doorbell_offset);
	else
		device->mapped[device->n_mapped++] = input->doorbell_offset;
	spin_unlock(&device->lock);
	return r;
}

static int fake_remove_hw_queue(struct amdgpu_mes *mes, struct mes_remove_queue_input *input)
{
	struct fake_device *device = of_adev(container_of(mes, struct amdgpu_device, mes));
	int at, r = 0;

	if (device->fault.destroy_us)
		usleep_range(device->fault.destroy_us, device->fault.destroy_us + 100);
	spin_lock(&device->lock);
	at = fake_mes_find(device, input->doorbell_offset);
	if (fault_due(&device->fault.mes_failures))
		r = -EIO;
	else if (at < 0)
		breaks_rule(device, "MES: queue removed that is not there, doorbell %x\n",
			    input->doorbell_offset);
	else
		device->mapped[at] = device->mapped[--device->n_mapped];
	spin_unlock(&device->lock);
	return r;
}

static const struct amdgpu_mes_funcs fake_mes_funcs = {
	.add_hw_queue = fake_add_hw_queue,
	.remove_hw_queue = fake_remove_hw_queue,
};

/* ------------------------------------------------------------------------------ amdgpu */

static int fake_alloc(struct amdgpu_device *adev, size_t size, void **mem, u64 *gpu_addr, void **cpu_ptr)
{
	struct fake_device *device = of_adev(adev);
	void *memory = vzalloc(size);

	if (device && device->fault.allocate_us)
		usleep_range(device->fault.allocate_us, device->fault.allocate_us + 100);
	if (!memory)
		return -ENOMEM;
	atomic_inc(&fake_allocations);
	*mem = memory;
	*gpu_addr = (u64)(uintptr_t)memory;
	*cpu_ptr = memory;
	return 0;
}

#ifdef HAS_KERNEL_MEM
#define amdgpu_amdkfd_alloc_gtt_mem amdgpu_amdkfd_alloc_kernel_mem
#define amdgpu_amdkfd_free_gtt_mem amdgpu_amdkfd_free_kernel_mem
#define IN_DOMAIN , u32 domain
#else
#define IN_DOMAIN
#endif
int amdgpu_amdkfd_alloc_gtt_mem(struct amdgpu_device *adev, size_t size IN_DOMAIN, void **mem_obj,
				uint64_t *gpu_addr, void **cpu_ptr, bool mqd_gfx9)
{
	return fake_alloc(adev, size, mem_obj, gpu_addr, cpu_ptr);
}

void amdgpu_amdkfd_free_gtt_mem(struct amdgpu_device *adev, void **mem_obj)
{
	vfree(*mem_obj);
	*mem_obj = NULL;
	atomic_dec(&fake_allocations);
}

int kfd_gtt_sa_allocate(fake_node *node, unsigned int size, struct kfd_mem_obj **mem_obj)
{
	struct kfd_mem_obj *object = kzalloc(sizeof(*object), GFP_KERNEL);
	void *memory;

	if (!object)
		return -ENOMEM;
	if (fake_alloc(node->adev, size, &memory, &object->gpu_addr, (void **)&object->cpu_ptr)) {
		kfree(object);
		return -ENOMEM;
	}
	*mem_obj = object;
	return 0;
}

int kfd_gtt_sa_free(fake_node *node, struct kfd_mem_obj *mem_obj)
{
	if (!mem_obj)
		return 0;
	vfree(mem_obj->cpu_ptr);
	kfree(mem_obj);
	atomic_dec(&fake_allocations);
	return 0;
}

uint64_t amdgpu_amdkfd_gpuvm_get_process_page_dir(void *drm_priv)
{
	return 0x1000;
}

int amdgpu_amdkfd_submit_ib(struct amdgpu_device *adev, enum kgd_engine_type engine, uint32_t vmid,
			    uint64_t gpu_addr, uint32_t *ib_cmd, uint32_t ib_len)
{
	return 0;
}

int amdgpu_queue_mask_bit_to_set_resource_bit(struct amdgpu_device *adev, int queue_bit)
{
	return queue_bit;
}

u64 amdgpu_bo_gpu_offset(struct amdgpu_bo *bo)
{
	return 0;
}

unsigned int kfd_get_num_sdma_engines(fake_node *node)
{
	return SDMA_ENGINES;
}

unsigned int kfd_get_num_xgmi_sdma_engines(fake_node *node)
{
	return 0;
}

void kfd_inc_compute_active(fake_node *node)
{
}

void kfd_dec_compute_active(fake_node *node)
{
}

struct kfd_process_device *kfd_get_process_device_data(fake_node *node, struct kfd_process *p)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		if (p->pdds[i]->dev == node)
			return p->pdds[i];
	return NULL;
}

#ifdef HAS_PASID_OF_DEVICE
#define OF_DEVICE , struct kfd_process_device **pdd
#else
#define OF_DEVICE
#endif
struct kfd_process *kfd_lookup_process_by_pasid(u32 pasid OF_DEVICE)
{
	return NULL;
}

void kfd_unref_process(struct kfd_process *p)
{
}

/* A reset as the driver does it: all queues evicted, scheduler off, hardware empty, and back. */
static void fake_reset(struct work_struct *work)
{
	struct fake_device *device = container_of(work, struct fake_device, reset_work);
	struct device_queue_manager *dqm = device->node->dqm;
	int index = device - fake_devices;
	struct fake_kfd_process *process;

	mutex_lock(&fake_processes_lock);
#if !SINCE_6_5
	dqm->ops.pre_reset(dqm);
#endif
	list_for_each_entry(process, &fake_processes, node) {
#if SINCE_6_5
		down_write(&device->domain->sem);
		dqm->ops.evict_process_queues(dqm, &process->pdds[index].qpd);
		up_write(&device->domain->sem);
#else
		dqm->ops.evict_process_queues(dqm, &process->pdds[index].qpd);
#endif
	}
	dqm_lock(dqm);
	dqm->active_runlist = false;
	dqm->is_hws_hang = false;
	dqm->is_resetting = false;
	dqm_unlock(dqm);
	spin_lock(&device->lock);
	device->n_mapped = 0;
	device->resets++;
	spin_unlock(&device->lock);
	list_for_each_entry(process, &fake_processes, node)
		dqm->ops.restore_process_queues(dqm, &process->pdds[index].qpd);
	mutex_unlock(&fake_processes_lock);
}

void amdgpu_amdkfd_gpu_reset(struct amdgpu_device *adev)
{
	schedule_work(&of_adev(adev)->reset_work);
}

#if SINCE_6_5
void amdgpu_amdkfd_debug_mem_fence(struct amdgpu_device *adev)
{
}

bool amdgpu_amdkfd_have_atomics_support(struct amdgpu_device *adev)
{
	return true;
}

bool amdgpu_amdkfd_is_fed(struct amdgpu_device *adev)
{
	return false;
}

int amdgpu_amdkfd_unmap_hiq(struct amdgpu_device *adev, u32 doorbell_off, u32 inst)
{
	return 0;
}

void amdgpu_device_flush_hdp(struct amdgpu_device *adev, struct amdgpu_ring *ring)
{
}

uint32_t amdgpu_doorbell_index_on_bar(struct amdgpu_device *adev, struct amdgpu_bo *db_bo,
				      uint32_t doorbell_index, uint32_t db_size)
{
	return (u32)(uintptr_t)db_bo + doorbell_index;
}

#ifdef HAS_MES_OF_XCC
#define OF_XCC , u32 xcc_id
#else
#define OF_XCC
#endif
int amdgpu_mes_suspend(struct amdgpu_device *adev OF_XCC)
{
	return 0;
}

int amdgpu_mes_resume(struct amdgpu_device *adev OF_XCC)
{
	return 0;
}

void amdgpu_queue_mask_bit_to_mec_queue(struct amdgpu_device *adev, int bit, int *mec, int *pipe, int *queue)
{
	*mec = 0;
	*pipe = bit / QUEUES_PER_PIPE;
	*queue = bit % QUEUES_PER_PIPE;
}

int amdgpu_vm_flush_compute_tlb(struct amdgpu_device *adev, struct amdgpu_vm *vm, uint32_t flush_type,
				uint32_t xcc_mask)
{
	return 0;
}

bool kfd_dbg_ev_raise(uint64_t event_mask, struct kfd_process *process, struct kfd_node *dev,
		      unsigned int source_id, bool use_worker, void *exception_data, size_t size)
{
	return true;
}

void kfd_signal_reset_event(struct kfd_node *dev)
{
}

struct kfd_topology_device *kfd_topology_device_by_id(uint32_t gpu_id)
{
	return NULL;
}

#ifdef HAS_DEQUEUE_WAIT
int pm_config_dequeue_wait_counts(struct packet_manager *pm, enum kfd_config_dequeue_wait_counts_cmd cmd, uint32_t value)
#else
int pm_update_grace_period(struct packet_manager *pm, uint32_t grace_period)
#endif
{
	return 0;
}
#else
void amdgpu_amdkfd_get_cu_info(struct amdgpu_device *adev, struct kfd_cu_info *cu_info)
{
	memset(cu_info, 0, sizeof(*cu_info));
}

void kfd_flush_tlb(struct kfd_process_device *pdd, enum TLB_FLUSH_TYPE type)
{
}

unsigned int kfd_get_doorbell_dw_offset_in_bar(struct kfd_dev *kfd, struct kfd_process_device *pdd,
					       unsigned int doorbell_id)
{
	return (pdd->process->pasid << 10) + doorbell_id;
}
#endif

/* -------------------------------------------------------------- processes and their queues */

static struct fake_kfd_process *fake_current_process(void)
{
	struct fake_kfd_process *process, *found = NULL;

	mutex_lock(&fake_processes_lock);
	list_for_each_entry(process, &fake_processes, node)
		if (process->kfd.mm == current->mm)
			found = process;
	mutex_unlock(&fake_processes_lock);
	return found;
}

static struct fake_kfd_process *fake_make_process(void)
{
	static u32 last_pasid;
	struct fake_kfd_process *process;
	int i;

	process = vzalloc(sizeof(*process));
	if (!process)
		return NULL;
	process->fpriv = vzalloc(sizeof(*process->fpriv));
	if (!process->fpriv) {
		vfree(process);
		return NULL;
	}
	process->drm.driver_priv = process->fpriv;
	mutex_init(&process->kfd.mutex);
	process->kfd.mm = current->mm;
	process->kfd.lead_thread = current->group_leader;
	get_task_struct(process->kfd.lead_thread);
	process->kfd.pqm.process = &process->kfd;
	for (i = 0; i < FAKE_GPUS; i++) {
		struct kfd_process_device *pdd = &process->pdds[i];

		pdd->dev = fake_devices[i].node;
		pdd->process = &process->kfd;
		pdd->drm_priv = &process->drm;
		pdd->qpd.dqm = fake_devices[i].node->dqm;
		pdd->qpd.pqm = &process->kfd.pqm;
		INIT_LIST_HEAD(&pdd->qpd.queues_list);
		INIT_LIST_HEAD(&pdd->qpd.priv_queue_list);
		pdd->qpd.doorbell_bitmap = bitmap_zalloc(KFD_MAX_NUM_OF_QUEUES_PER_PROCESS, GFP_KERNEL);
		process->kfd.pdds[i] = pdd;
	}
	process->kfd.n_pdds = FAKE_GPUS;

	mutex_lock(&fake_processes_lock);
	last_pasid++;
#ifdef HAS_PASID_OF_DEVICE
	for (i = 0; i < FAKE_GPUS; i++)
		process->pdds[i].pasid = last_pasid;
#else
	process->kfd.pasid = last_pasid;
#endif
#if SINCE_6_5
	for (i = 0; i < FAKE_GPUS; i++)
		process->pdds[i].qpd.proc_doorbells = (void *)(uintptr_t)(last_pasid << 10);
#endif
	list_add(&process->node, &fake_processes);
	mutex_unlock(&fake_processes_lock);
	atomic_inc(&fake_live_processes);
	return process;
}

static void fake_end_process(struct fake_kfd_process *process)
{
	int i;

	mutex_lock(&fake_processes_lock);
	list_del(&process->node);
	mutex_unlock(&fake_processes_lock);

	mutex_lock(&process->kfd.mutex);
	process->kfd.mm = NULL;
	for (i = 0; i < FAKE_GPUS; i++)
		fake_devices[i].node->dqm->ops.process_termination(fake_devices[i].node->dqm,
								    &process->pdds[i].qpd);
	mutex_unlock(&process->kfd.mutex);

	for (i = 0; i < KFD_MAX_NUM_OF_QUEUES_PER_PROCESS; i++)
		kfree(process->queues[i]);
	for (i = 0; i < FAKE_GPUS; i++)
		bitmap_free(process->pdds[i].qpd.doorbell_bitmap);
	put_task_struct(process->kfd.lead_thread);
	vfree(process->fpriv);
	vfree(process);
	atomic_dec(&fake_live_processes);
}

static bool fake_is_registered(struct kfd_process_device *pdd)
{
	return !list_empty(&pdd->qpd.queues_list);
}

static int fake_create(struct fake_kfd_process *process, struct fake_queue *args)
{
	struct device_queue_manager *dqm = fake_devices[args->gpu].node->dqm;
	struct kfd_process_device *pdd = &process->pdds[args->gpu];
	struct queue *q;
	bool first;
	int id, r;

	for (id = 0; id < KFD_MAX_NUM_OF_QUEUES_PER_PROCESS && process->queues[id]; id++)
		;
	if (id == KFD_MAX_NUM_OF_QUEUES_PER_PROCESS)
		return -ENOSPC;
	q = kzalloc(sizeof(*q), GFP_KERNEL);
	if (!q)
		return -ENOMEM;
	q->process = &process->kfd;
	q->device = fake_devices[args->gpu].node;
	q->properties.type = args->type == FAKE_SDMA ? KFD_QUEUE_TYPE_SDMA : KFD_QUEUE_TYPE_COMPUTE;
	q->properties.format = KFD_QUEUE_FORMAT_AQL;
	q->properties.queue_id = id;
	q->properties.queue_address = 0x100000;
	q->properties.queue_size = 4096;
	q->properties.queue_percent = args->percent;
	q->properties.priority = 7;
	q->properties.write_ptr = (void __user *)(uintptr_t)args->wptr;
	q->properties.read_ptr = (void __user *)(uintptr_t)args->wptr;

	first = !fake_is_registered(pdd);
	if (first) {
		r = dqm->ops.register_process(dqm, &pdd->qpd);
		if (r)
			goto free_queue;
	}
	r = dqm->ops.create_queue(dqm, q, &pdd->qpd, NULL, NULL, NULL);
	if (r) {
		if (first)
			dqm->ops.unregister_process(dqm, &pdd->qpd);
		goto free_queue;
	}
	process->queues[id] = q;
	args->queue_id = id;
	return 0;
free_queue:
	kfree(q);
	return r;
}

static struct queue *fake_find_queue(struct fake_kfd_process *process, u32 id)
{
	return id < KFD_MAX_NUM_OF_QUEUES_PER_PROCESS ? process->queues[id] : NULL;
}

static int fake_destroy(struct fake_kfd_process *process, struct fake_queue *args)
{
	struct queue *q = fake_find_queue(process, args->queue_id);
	struct kfd_process_device *pdd;
	struct device_queue_manager *dqm;
	int r;

	if (!q)
		return -EINVAL;
	dqm = q->device->dqm;
	pdd = kfd_get_process_device_data(q->device, &process->kfd);
	r = dqm->ops.destroy_queue(dqm, &pdd->qpd, q);
	if (r && r != -ETIME && r != -EIO)
		return r;
	kfree(q);
	process->queues[args->queue_id] = NULL;
	if (!fake_is_registered(pdd))
		dqm->ops.unregister_process(dqm, &pdd->qpd);
	return 0;
}

static int fake_update(struct fake_kfd_process *process, struct fake_queue *args)
{
	struct queue *q = fake_find_queue(process, args->queue_id);

	if (!q)
		return -EINVAL;
	q->properties.queue_percent = args->percent;
	return q->device->dqm->ops.update_queue(q->device->dqm, q, NULL);
}

struct fake_eviction {
	struct work_struct work;
	struct fake_process args;
	bool restore;
	int result;
};

static void fake_evict_work(struct work_struct *work)
{
	struct fake_eviction *eviction = container_of(work, struct fake_eviction, work);
	u32 gpu = eviction->args.gpu;
	struct device_queue_manager *dqm = fake_devices[gpu].node->dqm;
	struct fake_kfd_process *process;

	eviction->result = -ESRCH;
	mutex_lock(&fake_processes_lock);
	list_for_each_entry(process, &fake_processes, node) {
		if (process->kfd.lead_thread->tgid != eviction->args.pid)
			continue;
		eviction->result = eviction->restore ?
			dqm->ops.restore_process_queues(dqm, &process->pdds[gpu].qpd) :
			dqm->ops.evict_process_queues(dqm, &process->pdds[gpu].qpd);
	}
	mutex_unlock(&fake_processes_lock);
}

/* On a kernel thread, as memory management does it. */
static int fake_evict(const struct fake_process *args, bool restore)
{
	struct fake_eviction eviction = { .args = *args, .restore = restore };

	if (args->gpu >= FAKE_GPUS)
		return -EINVAL;
	INIT_WORK_ONSTACK(&eviction.work, fake_evict_work);
	schedule_work(&eviction.work);
	flush_work(&eviction.work);
	destroy_work_on_stack(&eviction.work);
	return eviction.result;
}

static bool fake_on_hardware(struct fake_device *device, struct queue *q)
{
	bool sdma = q->properties.type == KFD_QUEUE_TYPE_SDMA;
	unsigned int i;

	if (device->node->dqm->sched_policy == KFD_SCHED_POLICY_NO_HWS) {
		if (!sdma)
			return device->hqd[q->pipe][q->queue] == q->mqd;
		for (i = 0; i < ARRAY_SIZE(device->sdma); i++)
			if (device->sdma[i] == q->mqd)
				return true;
		return false;
	}
	for (i = 0; i < device->n_mapped; i++)
		if (device->mapped[i] == (NODE_KFD(device->node)->shared_resources.enable_mes ?
					  q->properties.doorbell_off : q->gpuseg.serial))
			return true;
	return false;
}

static int fake_get_state(struct fake_state *state)
{
	struct fake_queue_state *list;
	struct device_queue_manager *dqm;
	struct device_process_node *node;
	struct fake_device *device;
	u32 room = state->n_queues, n = 0;
	struct queue *q;
	unsigned int i;
	int r = 0;

	if (state->gpu >= FAKE_GPUS || room > FAKE_MAX_STATE)
		return -EINVAL;
	list = kcalloc(room + 1, sizeof(*list), GFP_KERNEL);
	if (!list)
		return -ENOMEM;
	device = &fake_devices[state->gpu];
	dqm = device->node->dqm;
	flush_work(&device->reset_work);

	dqm_lock(dqm);
	spin_lock(&device->lock);
	list_for_each_entry(node, &dqm->queues, list) {
		list_for_each_entry(q, &node->qpd->queues_list, list) {
			if (n++ >= room)
				continue;
			list[n - 1].pid = q->process->lead_thread->tgid;
			list[n - 1].queue_id = q->properties.queue_id;
			list[n - 1].on_hardware = fake_on_hardware(device, q);
			list[n - 1].is_active = q->properties.is_active;
			list[n - 1].is_held = q->properties.is_gpuseg_held;
			list[n - 1].is_evicted = q->properties.is_evicted;
		}
	}
	state->n_queues = n;
	state->active_queue_count = dqm->active_queue_count;
	state->active_cp_queue_count = dqm->active_cp_queue_count;
	state->total_queue_count = dqm->total_queue_count;
	state->processes_count = dqm->processes_count;
	state->on_hardware = device->n_mapped;
	for (i = 0; i < PIPES * QUEUES_PER_PIPE; i++)
		state->on_hardware += !!device->hqd[i / QUEUES_PER_PIPE][i % QUEUES_PER_PIPE];
	for (i = 0; i < ARRAY_SIZE(device->sdma); i++)
		state->on_hardware += !!device->sdma[i];
	state->rule_breaks = device->rule_breaks;
	state->runlists = device->runlists;
	state->resets = device->resets;
	spin_unlock(&device->lock);
	dqm_unlock(dqm);
	state->live_allocations = atomic_read(&fake_allocations);
	state->live_processes = atomic_read(&fake_live_processes);

	if (copy_to_user(u64_to_user_ptr(state->queues), list, min(n, room) * sizeof(*list)))
		r = -EFAULT;
	kfree(list);
	return r;
}

static int fake_set_fault(const struct fake_fault *fault)
{
	struct fake_device *device;

	if (fault->gpu >= FAKE_GPUS)
		return -EINVAL;
	device = &fake_devices[fault->gpu];
	spin_lock(&device->lock);
	device->fault = *fault;
	spin_unlock(&device->lock);
	return 0;
}

/* ------------------------------------------------------------------------- /dev/fake-kfd */

static long fake_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;
	struct fake_kfd_process *process;
	union {
		struct fake_queue queue;
		struct fake_process process;
		struct fake_fault fault;
		struct fake_state state;
	} u;
	long r;

	if (_IOC_SIZE(cmd) > sizeof(u) ||
	    ((_IOC_DIR(cmd) & _IOC_WRITE) && copy_from_user(&u, user, _IOC_SIZE(cmd))))
		return -EFAULT;

	switch (cmd) {
	case FAKE_CREATE:
	case FAKE_DESTROY:
	case FAKE_UPDATE:
	case FAKE_LONG:
		process = filp->private_data;
		if (!process)
			process = fake_current_process();
		if (!process)
			process = fake_make_process();
		if (!process)
			return -ENOMEM;
		/* One file per context: it ends with it. */
		filp->private_data = process;
		mutex_lock(&process->kfd.mutex);
		if (cmd == FAKE_LONG) {
			/* Ends early when the process is killed. */
			msleep_interruptible(u.process.ms);
			r = 0;
		} else if (cmd == FAKE_CREATE) {
			r = u.queue.gpu < FAKE_GPUS ? fake_create(process, &u.queue) : -EINVAL;
		} else if (cmd == FAKE_DESTROY) {
			r = fake_destroy(process, &u.queue);
		} else {
			r = fake_update(process, &u.queue);
		}
		mutex_unlock(&process->kfd.mutex);
		break;
	case FAKE_CONTEXT:
		if (filp->private_data)
			return -EBUSY;
		filp->private_data = fake_make_process();
		return filp->private_data ? 0 : -ENOMEM;
	case FAKE_EVICT:
	case FAKE_RESTORE:
		r = fake_evict(&u.process, cmd == FAKE_RESTORE);
		break;
	case FAKE_FAULT:
		r = fake_set_fault(&u.fault);
		break;
	case FAKE_STATE:
		r = fake_get_state(&u.state);
		break;
	case FAKE_MES_LEAKS:
		/* destroy_queue_cpsch() of 6.1 removes the queue from MES without counting it off. */
		return !SINCE_6_5;
	default:
		return -ENOTTY;
	}
	if (!r && (_IOC_DIR(cmd) & _IOC_READ) && copy_to_user(user, &u, _IOC_SIZE(cmd)))
		r = -EFAULT;
	return r;
}

static int fake_release(struct inode *inode, struct file *filp)
{
	if (filp->private_data)
		fake_end_process(filp->private_data);
	return 0;
}

static int fake_open(struct inode *inode, struct file *filp)
{
	/* misc_open() leaves the miscdevice there. */
	filp->private_data = NULL;
	return 0;
}

static const struct file_operations fake_fops = {
	.owner = THIS_MODULE,
	.open = fake_open,
	.release = fake_release,
	.unlocked_ioctl = fake_ioctl,
};

static struct miscdevice fake_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "fake-kfd",
	.fops = &fake_fops,
	.mode = 0666,
};

static const struct {
	u32 gc_version;
	u32 gfx_target_version;
	int policy;
	bool mes;
} fake_kinds[FAKE_GPUS] = {
	[FAKE_NO_HWS_GFX9] = { IP_VERSION(9, 4, 2), 90010, KFD_SCHED_POLICY_NO_HWS, false },
	[FAKE_HWS_GFX9] = { IP_VERSION(9, 4, 2), 90010, KFD_SCHED_POLICY_HWS, false },
	[FAKE_MES_GFX11] = { IP_VERSION(11, 0, 0), 110000, KFD_SCHED_POLICY_HWS, true },
	[FAKE_NO_HWS_GFX11] = { IP_VERSION(11, 0, 0), 110000, KFD_SCHED_POLICY_NO_HWS, false },
};

static u32 fake_sdma_doorbells[] = { 0x100, 0x10a, 0x114, 0x11e };

static void fake_remove_device(struct fake_device *device)
{
	if (device->node && device->node->dqm) {
#if !SINCE_6_5
		device->node->dqm->ops.stop(device->node->dqm);
		/* FAKE_MES_LEAKS: the driver would warn of its own miscount. */
		if (device->adev->enable_mes && !device->node->dqm->total_queue_count)
			device->node->dqm->active_queue_count = 0;
#endif
		device_queue_manager_uninit(device->node->dqm);
	}
	cancel_work_sync(&device->reset_work);
	vfree(device->hiq_queue.mqd);
#if SINCE_6_5
	if (device->node)
		kfree(device->node->kfd);
#endif
	kfree(device->node);
	kfree(device->domain);
	vfree(device->adev);
	memset(device, 0, sizeof(*device));
}

static int fake_add_device(int index)
{
	struct fake_device *device = &fake_devices[index];
	struct kgd2kfd_shared_resources *shared;
	struct amdgpu_device *adev;
	fake_node *node;
	int r;

	spin_lock_init(&device->lock);
	INIT_WORK(&device->reset_work, fake_reset);
	adev = vzalloc(sizeof(*adev));
	node = kzalloc(sizeof(*node), GFP_KERNEL);
	device->adev = adev;
	device->node = node;
	device->domain = kzalloc(sizeof(*device->domain), GFP_KERNEL);
	device->hiq_queue.mqd = vzalloc(PAGE_SIZE);
	if (!adev || !node || !device->domain || !device->hiq_queue.mqd)
		return -ENOMEM;
	device->hiq.queue = &device->hiq_queue;
#if SINCE_6_5
	node->kfd = kzalloc(sizeof(*node->kfd), GFP_KERNEL);
	if (!node->kfd)
		return -ENOMEM;
	node->kfd->adev = adev;
	node->xcc_mask = 1;
	node->compute_vmid_bitmap = 0xff00;
	adev->gfx.xcc_mask = 1;
#endif
	init_rwsem(&device->domain->sem);
	adev->dev = fake_parent;
	adev->reset_domain = device->domain;
	adev->asic_type = CHIP_IP_DISCOVERY;
	adev->ip_versions[GC_HWIP][0] = fake_kinds[index].gc_version;
	adev->enable_mes = fake_kinds[index].mes;
	mutex_init(&adev->mes.mutex_hidden);
	adev->mes.funcs = &fake_mes_funcs;
	adev->mes.adev = adev;

	node->adev = adev;
	node->id = FAKE_GPU_ID(index);
	node->kfd2kgd = &fake_kfd2kgd;
	node->vm_info.first_vmid_kfd = 8;
	node->vm_info.last_vmid_kfd = 15;
	node->vm_info.vmid_num_kfd = 8;
	NODE_KFD(node)->cwsr_enabled = true;
	NODE_KFD(node)->device_info.num_sdma_queues_per_engine = SDMA_QUEUES;
	NODE_KFD(node)->device_info.mqd_size_aligned = PAGE_SIZE;
	NODE_KFD(node)->device_info.doorbell_size = 8;
	NODE_KFD(node)->device_info.gfx_target_version = fake_kinds[index].gfx_target_version;
	shared = &NODE_KFD(node)->shared_resources;
	shared->compute_vmid_bitmap = 0xff00;
	shared->num_pipe_per_mec = PIPES;
	shared->num_queue_per_pipe = QUEUES_PER_PIPE;
	shared->enable_mes = fake_kinds[index].mes;
	shared->sdma_doorbell_idx = fake_sdma_doorbells;
	bitmap_set(shared->cp_queue_bitmap, 0, PIPES * QUEUES_PER_PIPE);

	sched_policy = fake_kinds[index].policy;
	node->dqm = device_queue_manager_init(node);
	if (!node->dqm)
		return -ENODEV;
	r = node->dqm->ops.start(node->dqm);
	if (r)
		return r;
	return 0;
}

static int __init fake_init(void)
{
	int i, r;

	fake_parent = root_device_register("fake-amdgpu");
	if (IS_ERR(fake_parent))
		return PTR_ERR(fake_parent);
	r = kfd_gpuseg_init();
	if (r)
		goto remove_parent;
	for (i = 0; i < FAKE_GPUS; i++) {
		r = fake_add_device(i);
		if (r)
			goto remove_devices;
	}
	r = misc_register(&fake_misc);
	if (r)
		goto remove_devices;
	return 0;

remove_devices:
	for (i = 0; i < FAKE_GPUS; i++)
		if (fake_devices[i].adev)
			fake_remove_device(&fake_devices[i]);
	kfd_gpuseg_exit();
remove_parent:
	root_device_unregister(fake_parent);
	return r;
}

static void __exit fake_exit(void)
{
	int i;

	misc_deregister(&fake_misc);
	for (i = 0; i < FAKE_GPUS; i++)
		fake_remove_device(&fake_devices[i]);
	kfd_gpuseg_exit();
	root_device_unregister(fake_parent);
	if (atomic_read(&fake_allocations))
		pr_err("fake-kfd: %d allocations are left\n", atomic_read(&fake_allocations));
}

module_init(fake_init);
module_exit(fake_exit);
MODULE_DESCRIPTION("Simulated amdgpu below the real KFD queue manager, for tests of gpuseg");
MODULE_LICENSE("GPL");
