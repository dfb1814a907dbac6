/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AMD's own libhsakmt (Debian's, 5.2) creates, changes and destroys queues over the stand-in of KFD, with the preload
 * library in between. The test shows that the preload library sees the calls of the genuine library. No AMD hardware:
 * the topology is simulated, and memory is granted without being allocated.
 *
 * libhsakmt reads the topology through files and libdrm. The functions below replace those of the C library and present
 * the simulated one.
 */
#define _GNU_SOURCE
#include "tests/check.h"

#if __has_include(<hsakmt.h>)
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <hsakmt.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "amd/agent_page.h"
#include "amd/amd_state.h"
#include "common/base.h"

#define SYSFS "/sys/devices/virtual/kfd/kfd"
/* Caches of the CPUs: virtual machines without a description of them exist, and the library gives up there. */
#define NUMA "/sys/devices/system/node/"
#define RENDER "/dev/dri/renderD"
#define GPU 4711u
#define SLOT 0u
#define TABLE_BYTES (1 << 16)
#define RING_BYTES 65536u
#define WAIT_NS (20 * NS_PER_S)

static char directory[64];
static struct amd_table *table;

static const char *shown(const char *path, char *room, size_t size)
{
	if (*directory && strncmp(path, SYSFS, sizeof(SYSFS) - 1) == 0)
		snprintf(room, size, "%s/sys/class/kfd/kfd%s", directory, path + sizeof(SYSFS) - 1);
	else if (*directory && strncmp(path, NUMA, sizeof(NUMA) - 1) == 0)
		snprintf(room, size, "%s/sys/class/kfd/kfd/topology/numa/%s", directory, path + sizeof(NUMA) - 1);
	else
		return path;
	return room;
}

FILE *fopen(const char *path, const char *mode)
{
	FILE *(*next)(const char *, const char *) = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
	char room[512];

	return next(shown(path, room, sizeof(room)), mode);
}

DIR *opendir(const char *path)
{
	DIR *(*next)(const char *) = (DIR * (*)(const char *)) dlsym(RTLD_NEXT, "opendir");
	char room[512];

	return next(shown(path, room, sizeof(room)));
}

int open(const char *path, int flags, ...)
{
	int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
	va_list list;
	mode_t mode = 0;

	va_start(list, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = va_arg(list, mode_t);
	va_end(list);
	return next(strncmp(path, RENDER, sizeof(RENDER) - 1) == 0 ? "/dev/zero" : path, flags, mode);
}

int drmOpenRender(int minor);
int drmOpenRender(int minor)
{
	(void)minor;
	return open("/dev/zero", O_RDWR | O_CLOEXEC);
}

/* The library asks for the marketing name of the GPU and continues without it. */
int amdgpu_device_initialize(int fd, uint32_t *major, uint32_t *minor, void **device);
int amdgpu_device_initialize(int fd, uint32_t *major, uint32_t *minor, void **device)
{
	(void)fd, (void)major, (void)minor, (void)device;
	return -ENODEV;
}

static void put(const char *path, const char *text)
{
	char whole[256];
	FILE *file;

	snprintf(whole, sizeof(whole), "%s/sys/class/kfd/kfd/topology/%s", directory, path);
	for (char *slash = strchr(whole + strlen(directory) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(whole, 0755);
		*slash = '/';
	}
	file = fopen(whole, "w");
	if (!file || fputs(text, file) < 0 || fclose(file) != 0)
		abort();
}

static void put_cache(int cpu)
{
	static const char *const files[][2] = {{"level", "1\n"},
					       {"type", "Data\n"},
					       {"size", "32K\n"},
					       {"coherency_line_size", "64\n"},
					       {"shared_cpu_list", "0-1\n"},
					       {"shared_cpu_map", "3\n"},
					       {"number_of_sets", "64\n"},
					       {"physical_line_partition", "1\n"},
					       {"ways_of_associativity", "8\n"}};
	char path[96];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "numa/node0/cpu%d/cache/index0/%s", cpu, files[i][0]);
		put(path, files[i][1]);
	}
}

static void set_up(void)
{
	char path[96];
	int fd;

	strcpy(directory, "/tmp/gpuseg-hsakmt-XXXXXX");
	CHECK(mkdtemp(directory), "mkdtemp: %s", strerror(errno));
	snprintf(path, sizeof(path), "%s/table", directory);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && ftruncate(fd, TABLE_BYTES) == 0, "%s: %s", path, strerror(errno));
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(table != MAP_FAILED, "mmap: %s", strerror(errno));
	close(fd);
	table->minor = 11;
	table->n_gpus = 1;
	table->gpu_ids[0] = GPU;
	setenv(AMD_STATE_ENV, directory, 1);
	put("generation_id", "1\n");
	put("system_properties", "platform_oem 0\nplatform_id 0\nplatform_rev 0\n");
	put("nodes/0/gpu_id", "0\n");
	put("nodes/0/name", "\n");
	put("nodes/0/properties", "cpu_cores_count 2\nsimd_count 0\nmem_banks_count 0\ncaches_count 0\nio_links_count "
				  "0\ncpu_core_id_base 0\n");
	put_cache(0);
	put_cache(1);
	put("nodes/1/gpu_id", "4711\n");
	put("nodes/1/name", "vega10\n");
	put("nodes/1/properties",
	    "cpu_cores_count 0\nsimd_count 256\nmem_banks_count 0\ncaches_count 0\nio_links_count 0\n"
	    "simd_id_base 2147483648\nmax_waves_per_simd 10\nlds_size_in_kb 64\ngds_size_in_kb 0\nwave_front_size 64\n"
	    "array_count 4\nsimd_arrays_per_engine 1\ncu_per_simd_array 16\nsimd_per_cu 4\nmax_slots_scratch_cu 32\n"
	    "gfx_target_version 90000\nvendor_id 4098\ndevice_id 26751\nlocation_id 768\ndomain 0\n"
	    "drm_render_minor 128\nnum_sdma_engines 2\nnum_cp_queues 24\nmax_engine_clk_fcompute 1500\n"
	    "capability 10752\nnum_gws 64\n");
}

/* By index, because the library does not report the kernel's numbers. */
static const struct amd_queue *queue(unsigned number)
{
	for (unsigned i = 0; i < AMD_PROCESSES; i++)
		if (table->processes[i].pid == getpid())
			return &table->processes[i].queues[number];
	return NULL;
}

static int order(struct gpuseg_kfd_agent *page, bool hold)
{
	return agent_page_wait(page, SLOT, agent_page_order(page, SLOT, hold), now_ns() + WAIT_NS);
}

static int make(HSA_QUEUE_TYPE type, void *ring, HsaQueueResource *made)
{
	static uint64_t pointers[2];

	*made = (HsaQueueResource){.Queue_write_ptr_aql = &pointers[0], .Queue_read_ptr_aql = &pointers[1]};
	return (int)hsaKmtCreateQueue(1, type, 100, HSA_QUEUE_PRIORITY_NORMAL, ring, RING_BYTES, NULL, made);
}

enum { AQL, PM4, COPIES, LATE };

TEST(should_hold_queues_of_amds_own_library)
{
	HsaQueueResource q[4];
	HsaSystemProperties machine;
	struct gpuseg_kfd_agent *page;
	void *ring = aligned_alloc(4096, RING_BYTES), *other = aligned_alloc(4096, RING_BYTES);
	uint32_t mask[2] = {0xffff, 0};
	HsaNodeProperties node;
	char command[96];
	int pidfd;

	set_up();
	CHECK_EQ(hsaKmtOpenKFD(), HSAKMT_STATUS_SUCCESS);
	CHECK_EQ(hsaKmtAcquireSystemProperties(&machine), HSAKMT_STATUS_SUCCESS);
	CHECK_EQ(machine.NumNodes, 2);
	CHECK_EQ(hsaKmtGetNodeProperties(1, &node), HSAKMT_STATUS_SUCCESS);
	CHECK_EQ(node.NumFComputeCores, 256);
	CHECK_EQ(make(HSA_QUEUE_COMPUTE_AQL, ring, &q[AQL]), HSAKMT_STATUS_SUCCESS);
	CHECK_EQ(make(HSA_QUEUE_COMPUTE, other, &q[PM4]), HSAKMT_STATUS_SUCCESS);
	CHECK_EQ(make(HSA_QUEUE_SDMA, other, &q[COPIES]), HSAKMT_STATUS_SUCCESS);
	pidfd = pidfd_of(getpid());
	CHECK_EQ(agent_page_open(getpid(), pidfd, &page), 0);
	CHECK_EQ(page->known, 3);
	page->slots[SLOT].gpu_id = GPU;
	page->slots[SLOT].period_ms = 60000;

	const struct amd_queue before = *queue(AQL);

	CHECK_EQ(before.address, (uintptr_t)ring);
	CHECK_EQ(before.size, RING_BYTES);
	CHECK_EQ(before.percentage, 100);
	CHECK_EQ(order(page, true), 0);
	CHECK_EQ(page->slots[SLOT].held, 2);
	CHECK_EQ(queue(AQL)->percentage, 0);
	CHECK_EQ(queue(PM4)->percentage, 0);
	CHECK_EQ(queue(COPIES)->percentage, 100);
	CHECK_EQ(queue(AQL)->address, before.address);
	CHECK_EQ(queue(AQL)->size, before.size);
	CHECK_EQ(queue(AQL)->priority, before.priority);

	/* as ROCr suspends and resumes a queue, and sets its priority */
	CHECK_EQ(hsaKmtUpdateQueue(q[AQL].QueueId, 0, HSA_QUEUE_PRIORITY_NORMAL, ring, RING_BYTES, NULL),
		 HSAKMT_STATUS_SUCCESS);
	CHECK_EQ(hsaKmtUpdateQueue(q[AQL].QueueId, 100, HSA_QUEUE_PRIORITY_MAXIMUM, ring, RING_BYTES, NULL),
		 HSAKMT_STATUS_SUCCESS);
	CHECK_EQ(hsaKmtSetQueueCUMask(q[AQL].QueueId, 64, mask), HSAKMT_STATUS_SUCCESS);
	CHECK_EQ(queue(AQL)->percentage, 0);
	CHECK(queue(AQL)->priority > before.priority, "priority %u", queue(AQL)->priority);
	CHECK_EQ(make(HSA_QUEUE_COMPUTE_AQL, ring, &q[LATE]), HSAKMT_STATUS_SUCCESS);
	CHECK_EQ(queue(LATE)->percentage, 0);
	CHECK_EQ(hsaKmtDestroyQueue(q[PM4].QueueId), HSAKMT_STATUS_SUCCESS);
	CHECK_EQ(page->known, 3);

	CHECK_EQ(order(page, false), 0);
	CHECK_EQ(queue(AQL)->percentage, 100);
	CHECK_EQ(queue(LATE)->percentage, 100);
	CHECK_EQ(queue(PM4)->used, 0);
	CHECK_EQ(hsaKmtDestroyQueue(q[LATE].QueueId), HSAKMT_STATUS_SUCCESS);
	CHECK_EQ(hsaKmtDestroyQueue(q[COPIES].QueueId), HSAKMT_STATUS_SUCCESS);
	CHECK_EQ(hsaKmtDestroyQueue(q[AQL].QueueId), HSAKMT_STATUS_SUCCESS);
	CHECK_EQ(page->known, 0);
	CHECK_EQ(table->foreign, 0);
	CHECK_EQ(hsaKmtReleaseSystemProperties(), HSAKMT_STATUS_SUCCESS);
	CHECK_EQ(hsaKmtCloseKFD(), HSAKMT_STATUS_SUCCESS);
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	CHECK(system(command) == 0, "%s", command);
}
#else
TEST(should_hold_queues_of_amds_own_library)
{
	SKIP("hsakmt.h is missing; install libhsakmt-dev");
}
#endif

static const struct check_case cases[] = {CASE(should_hold_queues_of_amds_own_library)};
CHECK_MAIN_APART(cases)
