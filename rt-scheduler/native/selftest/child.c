/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/base.h"
#include "spin.h"

#define KERNEL_NS NS_PER_MS	   /* a short kernel */
#define AHEAD_NS (500 * NS_PER_MS) /* so much work is queued: a late child does not leave the GPU idle */
#define AHEAD_MIN 4		   /* kernels */
#define BEGIN_LIMIT_NS (2 * NS_PER_S)
#define ITERATIONS_FIRST 20000u
#define ITERATIONS_MAX 50000000u
#define CALIBRATIONS 6
#define CALIBRATION_KERNELS 20
#define HOST_REGISTER_DEVICEMAP 2u /* CU_MEMHOSTREGISTER_DEVICEMAP, CU_MEMHOSTALLOC_DEVICEMAP */
#define STREAM_NON_BLOCKING 1u

/*
 * One thread computes for `n` iterations, whatever the clock says, and then counts. Of an old version and target, so
 * that every driver compiles it.
 */
#define PTX_BODY                                                                                                       \
	".address_size 64\n"                                                                                           \
	".visible .entry spin(.param .u64 page, .param .u32 n)\n"                                                      \
	"{\n"                                                                                                          \
	"  .reg .pred %more;\n"                                                                                        \
	"  .reg .u32 %i, %x;\n"                                                                                        \
	"  .reg .u64 %p, %c;\n"                                                                                        \
	"  ld.param.u64 %p, [page];\n"                                                                                 \
	"  ld.param.u32 %i, [n];\n"                                                                                    \
	"  cvta.to.global.u64 %p, %p;\n"                                                                               \
	"  mov.u32 %x, 12345;\n"                                                                                       \
	"again:\n"                                                                                                     \
	"  mad.lo.u32 %x, %x, 1664525, 1013904223;\n"                                                                  \
	"  sub.u32 %i, %i, 1;\n"                                                                                       \
	"  setp.ne.u32 %more, %i, 0;\n"                                                                                \
	"  @%more bra again;\n"                                                                                        \
	"  st.volatile.global.u32 [%p + 8], %x;\n"                                                                     \
	"  ld.volatile.global.u64 %c, [%p];\n"                                                                         \
	"  add.u64 %c, %c, 1;\n"                                                                                       \
	"  st.volatile.global.u64 [%p], %c;\n"                                                                         \
	"  membar.sys;\n"                                                                                              \
	"  ret;\n"                                                                                                     \
	"}\n"

static const char *const ptx[] = {".version 6.0\n.target sm_50\n" PTX_BODY, ".version 6.4\n.target sm_75\n" PTX_BODY};

static const char hip_source[] = "extern \"C\" __global__ void spin(unsigned long long *page, unsigned n)\n"
				 "{\n"
				 "  volatile unsigned long long *p = page;\n"
				 "  unsigned x = 12345;\n"
				 "  do x = x * 1664525u + 1013904223u; while (--n);\n"
				 "  p[1] = x;\n"
				 "  p[0] = p[0] + 1;\n"
				 "  __threadfence_system();\n"
				 "}\n";

/* CUDA's driver API; HIP's functions have the same arguments, and its errors mean the same. */
static struct {
	int (*init)(unsigned);
	int (*device_count)(int *);
	int (*device_get)(int *, int);
	int (*device_name)(char *, int, int);
	int (*context_retain)(void **, int);
	int (*context_set)(void *);
	int (*host_register)(void *, size_t, unsigned);
	int (*host_alloc)(void **, size_t, unsigned);
	int (*device_pointer)(uint64_t *, void *, unsigned);
	int (*module_load)(void **, const void *);
	int (*module_function)(void **, void *, const char *);
	int (*stream_create)(void **, unsigned);
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
		      void **);
} gpu;

/* The compiler of HIP, which alone turns a kernel into code for the GPU that is there. */
static struct {
	int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *);
	int (*compile)(void *, int, const char *const *);
	int (*code_size)(void *, size_t *);
	int (*code)(void *, char *);
} hiprtc;

static struct child_page *page;
static volatile uint64_t *counter; /* the page's own, or pinned memory that is copied there; then the result */
static uint64_t device_counter;
static uint64_t launched;
static void *function, *stream;

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(page->reason, sizeof(page->reason), format, list);
	va_end(list);
	__atomic_store_n(&page->state, CHILD_FAILED, __ATOMIC_RELEASE);
	_exit(EXIT_FAILURE);
}

static void need(const char *call, int error)
{
	if (error != 0)
		fail("%s: %s error %d", call, driver->hip ? "HIP" : "CUDA", error);
}

struct symbol {
	const char *cuda, *hip;
	void *to;
};

/* Of the first of these libraries that is there. */
static void *open_library(const char *const names[], size_t count)
{
	void *library = NULL;
	char missing[120] = "";

	for (size_t i = 0; i < count && !library; i++) {
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
		if (!library)
			snprintf(missing, sizeof(missing), "%s", dlerror());
	}
	if (!library)
		fail("%s", missing);
	return library;
}

static void load_symbols(void *library, const struct symbol *symbols, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *name = driver->hip ? symbols[i].hip : symbols[i].cuda;
		void *symbol = dlsym(library, name);

		if (!symbol)
			fail("%s is not in the library", name);
		memcpy(symbols[i].to, &symbol, sizeof(symbol));
	}
}

static void load_runtime(void)
{
	static const char *const cuda[] = {"libcuda.so.1"};
	static const char *const hip[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so",
					  "/opt/rocm/lib/libamdhip64.so"};
	static const struct symbol symbols[] = {
		{"cuInit", "hipInit", &gpu.init},
		{"cuDeviceGetCount", "hipGetDeviceCount", &gpu.device_count},
		{"cuDeviceGet", "hipDeviceGet", &gpu.device_get},
		{"cuDeviceGetName", "hipDeviceGetName", &gpu.device_name},
		{"cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain", &gpu.context_retain},
		{"cuCtxSetCurrent", "hipCtxSetCurrent", &gpu.context_set},
		{"cuMemHostRegister_v2", "hipHostRegister", &gpu.host_register},
		{"cuMemHostAlloc", "hipHostMalloc", &gpu.host_alloc},
		{"cuMemHostGetDevicePointer_v2", "hipHostGetDevicePointer", &gpu.device_pointer},
		{"cuModuleLoadData", "hipModuleLoadData", &gpu.module_load},
		{"cuModuleGetFunction", "hipModuleGetFunction", &gpu.module_function},
		{"cuStreamCreate", "hipStreamCreateWithFlags", &gpu.stream_create},
		{"cuLaunchKernel", "hipModuleLaunchKernel", &gpu.launch},
	};

	load_symbols(driver->hip ? open_library(hip, ARRAY_LENGTH(hip)) : open_library(cuda, ARRAY_LENGTH(cuda)),
		     symbols, ARRAY_LENGTH(symbols));
}

/* Until ROCm 6 the compiler is in the runtime's library, too. */
static void load_compiled(void **module)
{
	static const char *const names[] = {
		"libhiprtc.so.7",   "libhiprtc.so.6",	"libhiprtc.so.5", "libhiprtc.so",
		"libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so", "/opt/rocm/lib/libhiprtc.so"};
	static const struct symbol symbols[] = {
		{NULL, "hiprtcCreateProgram", &hiprtc.create},
		{NULL, "hiprtcCompileProgram", &hiprtc.compile},
		{NULL, "hiprtcGetCodeSize", &hiprtc.code_size},
		{NULL, "hiprtcGetCode", &hiprtc.code},
	};
	void *program;
	size_t size;
	char *code;

	load_symbols(open_library(names, ARRAY_LENGTH(names)), symbols, ARRAY_LENGTH(symbols));
	need("hiprtcCreateProgram", hiprtc.create(&program, hip_source, "spin.hip", 0, NULL, NULL));
	need("hiprtcCompileProgram", hiprtc.compile(program, 0, NULL)); /* for the GPU that is there */
	need("hiprtcGetCodeSize", hiprtc.code_size(program, &size));
	code = malloc(size);
	if (!code)
		fail("no memory for %zu bytes of code", size);
	need("hiprtcGetCode", hiprtc.code(program, code));
	need("hipModuleLoadData", gpu.module_load(module, code));
}

/* As NVML says, if it is there. */
static int persistence(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	int (*init)(void), (*handle)(unsigned, void **), (*mode)(void *, int *);
	void *device;
	int enabled;

	if (!library)
		return -1;
	*(void **)&init = dlsym(library, "nvmlInit_v2");
	*(void **)&handle = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&mode = dlsym(library, "nvmlDeviceGetPersistenceMode");
	if (!init || !handle || !mode || init() != 0 || handle(0, &device) != 0 || mode(device, &enabled) != 0)
		return -1;
	return enabled != 0;
}

static void launch(uint32_t scale)
{
	uint64_t n64 = (uint64_t)__atomic_load_n(&page->iterations, __ATOMIC_ACQUIRE) * (scale ? scale : 1);
	uint32_t n = n64 > UINT32_MAX ? UINT32_MAX : (uint32_t)n64;
	void *parameters[] = {&device_counter, &n};

	need("launch", gpu.launch(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
	launched++;
	__atomic_store_n(&page->launched, launched, __ATOMIC_RELEASE);
}

static uint64_t finished(void)
{
	const uint64_t n = __atomic_load_n(counter, __ATOMIC_ACQUIRE);

	if (counter != &page->count) {
		page->result = counter[1];
		__atomic_store_n(&page->count, n, __ATOMIC_RELEASE);
	}
	return n;
}

/* Waits until all that was launched is done; false if that takes too long. */
static bool drain(void)
{
	const int64_t limit_ns = now_ns() + BEGIN_LIMIT_NS;

	while (finished() < launched) {
		if (now_ns() > limit_ns)
			return false;
		if (now_ns() - limit_ns + BEGIN_LIMIT_NS > 20 * NS_PER_MS)
			sleep_until(now_ns() + NS_PER_MS, NULL);
	}
	return true;
}

static void prepare(void)
{
	void *context, *module = NULL, *memory = (void *)page;
	int device, count = 0, error = 1;

	load_runtime();
	need("initialize", gpu.init(0));
	need("number of devices", gpu.device_count(&count));
	if (count == 0)
		fail("%s sees no GPU", driver->hip ? "HIP" : "CUDA");
	need("device", gpu.device_get(&device, 0));
	need("name of the device", gpu.device_name(page->gpu, sizeof(page->gpu), device));
	need("context", gpu.context_retain(&context, device));
	need("current context", gpu.context_set(context));
	counter = &page->count;
	if (gpu.host_register(memory, 4096, HOST_REGISTER_DEVICEMAP) != 0) {
		need("pinned memory", gpu.host_alloc(&memory, 4096, HOST_REGISTER_DEVICEMAP));
		memset(memory, 0, 4096);
		counter = memory;
	}
	need("pointer of the device", gpu.device_pointer(&device_counter, memory, 0));
	for (size_t i = 0; !driver->hip && i < ARRAY_LENGTH(ptx) && error != 0; i++)
		error = gpu.module_load(&module, ptx[i]);
	if (driver->hip)
		load_compiled(&module);
	else
		need("load the kernel", error);
	need("function of the kernel", gpu.module_function(&function, module, "spin"));
	need("stream", gpu.stream_create(&stream, STREAM_NON_BLOCKING));
}

/* By the fastest run: in the first one the kernel is loaded, the GPU's clock rises, and this process may be late. */
static void calibrate(void)
{
	double fastest = 0; /* iterations in a ns */

	page->iterations = ITERATIONS_FIRST;
	for (int i = 0; i < CALIBRATIONS; i++) {
		const int64_t from_ns = now_ns();
		int64_t took_ns;
		double speed, wanted;

		for (int k = 0; k < CALIBRATION_KERNELS; k++)
			launch(1);
		if (!drain())
			fail("%d kernels of %u iterations did not end within %d s", CALIBRATION_KERNELS,
			     page->iterations, (int)(BEGIN_LIMIT_NS / NS_PER_S));
		took_ns = now_ns() - from_ns;
		speed = (double)page->iterations * CALIBRATION_KERNELS / (double)(took_ns > 0 ? took_ns : 1);
		fastest = speed > fastest ? speed : fastest;
		wanted = fastest * (double)KERNEL_NS;
		page->iterations = wanted < 1000 ? 1000 : wanted > ITERATIONS_MAX ? ITERATIONS_MAX : (uint32_t)wanted;
	}
	page->kernel_ns = (int64_t)((double)page->iterations / fastest);
}

static void answer_request(uint32_t request)
{
	int64_t from_ns;

	if (!drain()) {
		page->took_ns = -1;
	} else {
		from_ns = now_ns();
		launch(1);
		page->took_ns = drain() ? now_ns() - from_ns : -1;
	}
	__atomic_store_n(&page->answered, request, __ATOMIC_RELEASE);
}

void child_main(int fd, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The helper and the watchdog take duplicates of this process's descriptors; neither is its parent. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED || getppid() != parent)
		_exit(EXIT_FAILURE);
	prepare();
	calibrate();
	page->persistence = page->limit == 0 && driver->gsp ? persistence() : -1;
	__atomic_store_n(&page->state, CHILD_READY, __ATOMIC_RELEASE);
	while (page->limit == 0 || launched < page->limit) {
		const uint32_t request = __atomic_load_n(&page->request, __ATOMIC_ACQUIRE);
		const uint32_t scale = __atomic_load_n(&page->scale, __ATOMIC_ACQUIRE);
		uint64_t ahead = (uint64_t)(AHEAD_NS / KERNEL_NS) / (scale ? scale : 1);

		ahead = ahead < AHEAD_MIN ? AHEAD_MIN : ahead;
		while (__atomic_load_n(&page->mode, __ATOMIC_ACQUIRE) == CHILD_ENDLESS &&
		       launched - finished() < ahead && (page->limit == 0 || launched < page->limit))
			launch(scale);
		if (request != page->answered)
			answer_request(request);
		finished();
		/* short naps where it is asked for begins, so that the next one is not late */
		sleep_until(now_ns() + NS_PER_MS / 2, NULL);
	}
	_exit(drain() ? EXIT_SUCCESS : EXIT_FAILURE);
}
