/* SPDX-License-Identifier: Apache-2.0 */
/* See standin.h. */
#include "standin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PER_THREAD_DEFAULT_STREAM 2
#define ERROR_NOT_FOUND 500
#define ERROR_INVALID_VALUE 1
#define ERROR_NOT_INITIALIZED 3
#define ERROR_INVALID_CONTEXT 201
#define ERROR_INVALID_HANDLE 400
#define ERROR_CAPTURE_IMPLICIT 906
#define MAGIC 0x57a4d191u
#define RING 8192
#define GRAPH_MAX 4096

enum work { KERNEL, WRITE_VALUE, SET_WORD, COPY_BYTES, SET_BYTES, RECORD_EVENT };

struct op {
	enum work work;
	long us;
	void *to;
	const void *from;
	uint64_t value;
	size_t bytes;
};

struct CUfunc_st {
	long us;
};

struct CUgraph_st {
	size_t count;
	struct op ops[GRAPH_MAX];
};

struct CUgraphExec_st {
	struct CUgraph_st graph;
};

struct CUevent_st {
	uint32_t magic;
	uint64_t recorded; /* guarded by the mutex */
	uint64_t done;
};

struct CUstream_st {
	uint32_t magic;
	struct CUctx_st *context;
	int priority;
	bool touches; /* made by cuStreamCreate() */
	pthread_t worker;
	bool capturing;
	CUgraph graph;
	bool ending;
	uint64_t put, taken, done; /* operations */
	struct op ring[RING];
	struct CUstream_st *next;
};

struct CUctx_st {
	uint32_t magic;
	uint32_t uid;
	CUdevice device;
	struct CUstream_st legacy;
	struct CUstream_st *streams;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static standin_tracer tracer; /* atomic */
static unsigned int violations, markers, queries, touches, captures, uids;
static pid_t process;

static __thread struct CUctx_st *stack[8];
static __thread unsigned int depth;
static __thread struct CUstream_st *own_stream;

static struct CUctx_st *current(void)
{
	return depth ? stack[depth - 1] : NULL;
}

static void violation(const char *what)
{
	fprintf(stderr, "stand-in: violation: %s\n", what);
	__atomic_fetch_add(&violations, 1, __ATOMIC_RELAXED);
}

unsigned int standin_violations(void)
{
	return __atomic_load_n(&violations, __ATOMIC_RELAXED);
}

unsigned int standin_markers(void)
{
	return __atomic_load_n(&markers, __ATOMIC_RELAXED);
}

unsigned int standin_queries(void)
{
	return __atomic_load_n(&queries, __ATOMIC_RELAXED);
}

unsigned int standin_touches(void)
{
	return __atomic_load_n(&touches, __ATOMIC_RELAXED);
}

/* ---- callbacks ---- */

const char *standin_call_name(uint32_t id)
{
	static const char *const names[] = {
#define X(name) [CALL_##name] = #name,
		STANDIN_CALLS
#undef X
	};

	return id < CALL_END ? names[id] : NULL;
}

void standin_trace(standin_tracer t)
{
	__atomic_store_n(&tracer, t, __ATOMIC_RELEASE);
}

struct trace {
	enum standin_call call;
	uint64_t correlation;
	CUresult result;
	struct cupti_call data;
};

static void enter(struct trace *t, enum standin_call call, const void *parameters)
{
	const standin_tracer f = __atomic_load_n(&tracer, __ATOMIC_ACQUIRE);
	struct CUctx_st *context = current();

	*t = (struct trace){.call = call, .correlation = 0xdeadbeef};
	t->data = (struct cupti_call){.site = CUPTI_SITE_ENTER,
				      .function_name = standin_call_name(call),
				      .parameters = parameters,
				      .result = &t->result,
				      .context = context,
				      .context_uid = context ? context->uid : 0,
				      .correlation = &t->correlation};
	if (getpid() != process)
		violation("the driver is called in a forked child");
	if (f)
		f(call, &t->data);
}

static CUresult leave(struct trace *t, CUresult result)
{
	const standin_tracer f = __atomic_load_n(&tracer, __ATOMIC_ACQUIRE);

	t->result = result;
	t->data.site = CUPTI_SITE_EXIT;
	if (f)
		f(t->call, &t->data);
	return t->result;
}

/* ---- streams ---- */

static void spend(long us)
{
	struct timespec begin, at;

	if (us > 100) {
		const struct timespec ts = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

		nanosleep(&ts, NULL);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		clock_gettime(CLOCK_MONOTONIC, &at);
	} while ((at.tv_sec - begin.tv_sec) * 1000000000L + (at.tv_nsec - begin.tv_nsec) < us * 1000);
}

static void carry_out(const struct op *op)
{
	switch (op->work) {
	case KERNEL: {
		uint64_t *p = op->to;
		uint64_t before = __atomic_load_n(p, __ATOMIC_RELAXED);

		spend(op->us);
		if (!__atomic_compare_exchange_n(p, &before, before * 31 + op->value, false, __ATOMIC_RELEASE,
						 __ATOMIC_RELAXED))
			violation("a kernel's word is changed while it runs");
		break;
	}
	case WRITE_VALUE:
		__atomic_store_n((uint32_t *)op->to, (uint32_t)op->value, __ATOMIC_RELEASE);
		__atomic_fetch_add(&markers, 1, __ATOMIC_RELAXED);
		break;
	case SET_WORD:
		spend(op->us);
		__atomic_store_n((uint32_t *)op->to, (uint32_t)op->value, __ATOMIC_RELEASE);
		break;
	case COPY_BYTES:
		memcpy(op->to, op->from, op->bytes);
		break;
	case SET_BYTES:
		memset(op->to, (int)op->value, op->bytes);
		break;
	case RECORD_EVENT: {
		struct CUevent_st *event = op->to;

		pthread_mutex_lock(&mutex);
		event->done = op->value;
		pthread_mutex_unlock(&mutex);
		break;
	}
	}
}

static void *work(void *arg)
{
	struct CUstream_st *s = arg;

	pthread_mutex_lock(&mutex);
	for (;;) {
		struct op op;

		while (s->taken == s->put && !s->ending)
			pthread_cond_wait(&change, &mutex);
		if (s->taken == s->put)
			break;
		op = s->ring[s->taken++ % RING];
		pthread_mutex_unlock(&mutex);
		carry_out(&op);
		pthread_mutex_lock(&mutex);
		s->done++;
		pthread_cond_broadcast(&change);
	}
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void init_stream(struct CUstream_st *s, struct CUctx_st *context, int priority)
{
	pthread_mutex_lock(&mutex);
	s->magic = MAGIC;
	s->context = context;
	s->priority = priority;
	s->next = context->streams;
	context->streams = s;
	pthread_mutex_unlock(&mutex);
	if (pthread_create(&s->worker, NULL, work, s) != 0)
		abort();
}

static bool stream_valid(const struct CUstream_st *s)
{
	bool valid;

	pthread_mutex_lock(&mutex);
	valid = s->magic == MAGIC;
	pthread_mutex_unlock(&mutex);
	return valid;
}

static struct CUstream_st *first_stream(const struct CUctx_st *context)
{
	struct CUstream_st *s;

	pthread_mutex_lock(&mutex);
	s = context->streams;
	pthread_mutex_unlock(&mutex);
	return s;
}

static struct CUstream_st *stream_of(CUstream stream, bool per_thread)
{
	struct CUctx_st *context = current();
	uintptr_t handle = (uintptr_t)stream;

	if (!context)
		return NULL;
	if (handle == 0)
		handle = per_thread ? STREAM_PER_THREAD : STREAM_LEGACY;
	if (handle == STREAM_LEGACY)
		return &context->legacy;
	if (handle == STREAM_PER_THREAD) {
		if (!own_stream) {
			own_stream = calloc(1, sizeof(*own_stream));
			init_stream(own_stream, context, 0);
		}
		return own_stream;
	}
	if (!stream_valid(stream)) {
		violation("a stream that is no longer valid is used");
		return NULL;
	}
	return stream;
}

/* Append, or put into the graph. The mutex is held. */
static void put_locked(struct CUstream_st *s, const struct op *op)
{
	if (s->capturing) {
		if (op->work == WRITE_VALUE)
			violation("a marker is captured");
		if (s->graph->count < GRAPH_MAX)
			s->graph->ops[s->graph->count++] = *op;
		return;
	}
	while (s->put - s->done >= RING) /* the queue of a GPU is finite, too */
		pthread_cond_wait(&change, &mutex);
	s->ring[s->put++ % RING] = *op;
	pthread_cond_broadcast(&change);
}

static CUresult put(struct CUstream_st *s, struct op op)
{
	if (!s)
		return ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&mutex);
	if (s == &s->context->legacy && captures) {
		violation("work on the default stream during a capture");
		pthread_mutex_unlock(&mutex);
		return ERROR_CAPTURE_IMPLICIT;
	}
	put_locked(s, &op);
	pthread_mutex_unlock(&mutex);
	return CUDA_SUCCESS;
}

static CUresult wait_until_done(struct CUstream_st *s)
{
	uint64_t number;

	if (!s)
		return ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&mutex);
	number = s->put;
	while (s->done < number)
		pthread_cond_wait(&change, &mutex);
	pthread_mutex_unlock(&mutex);
	return CUDA_SUCCESS;
}

/* ---- process and contexts ---- */

CUresult cuInit(unsigned int flags)
{
	static uint32_t once;
	const char *path = getenv("CUDA_INJECTION64_PATH");

	if (flags)
		return ERROR_INVALID_VALUE;
	if (__atomic_exchange_n(&once, 1, __ATOMIC_ACQ_REL))
		return CUDA_SUCCESS;
	process = getpid();
	if (path && *path) {
		void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		int (*initialize)(void) = NULL;

		if (library)
			*(void **)&initialize = dlsym(library, "InitializeInjection");
		if (initialize && initialize() != 1)
			violation("the injected library is not initialised");
	}
	return CUDA_SUCCESS;
}

/* As the driver does: the variant that the flags ask for, else the form that the version had. */
CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, void *status)
{
	static const char *const endings[] = {"_v2", ""};
	void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	char name[64];

	(void)status;
	*function = NULL;
	/* STANDIN_NEW_FORM: a form of this function that came after the tests were written. */
	if (getenv("STANDIN_NEW_FORM") && strcmp(getenv("STANDIN_NEW_FORM"), symbol) == 0)
		*function = (void *)standin_kernel;
	for (size_t i = 0; version >= 4000 && i < sizeof(endings) / sizeof(endings[0]) && !*function; i++) {
		snprintf(name, sizeof(name), "%s%s%s", symbol, endings[i],
			 flags & PER_THREAD_DEFAULT_STREAM ? "_ptsz" : "");
		*function = dlsym(library, name);
		snprintf(name, sizeof(name), "%s%s", symbol, endings[i]);
		if (!*function)
			*function = dlsym(library, name);
	}
	dlclose(library);
	return *function ? CUDA_SUCCESS : ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}

CUresult cuDriverGetVersion(int *version)
{
	*version = 13000;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
	struct CUctx_st *c = calloc(1, sizeof(*c));

	if (!c || flags)
		abort();
	c->magic = MAGIC;
	c->uid = __atomic_add_fetch(&uids, 1, __ATOMIC_RELAXED);
	c->device = device;
	init_stream(&c->legacy, c, 0);
	*context = c;
	return cuCtxPushCurrent_v2(c);
}

static void end_stream(struct CUstream_st *s)
{
	pthread_mutex_lock(&mutex);
	s->ending = true;
	pthread_cond_broadcast(&change);
	pthread_mutex_unlock(&mutex);
	pthread_join(s->worker, NULL);
	pthread_mutex_lock(&mutex);
	s->magic = 0;
	pthread_mutex_unlock(&mutex);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
	const struct {
		CUcontext context;
	} p = {context};
	struct trace t;

	enter(&t, CALL_cuCtxDestroy_v2, &p);
	for (struct CUstream_st *s = first_stream(context); s; s = s->next) {
		if (stream_valid(s))
			end_stream(s);
	}
	context->magic = 0;
	if (current() == context)
		depth--;
	return leave(&t, CUDA_SUCCESS);
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	if (!context || context->magic != MAGIC) {
		violation("a context that is no longer valid is used");
		return ERROR_INVALID_CONTEXT;
	}
	if (depth == sizeof(stack) / sizeof(stack[0]))
		abort();
	stack[depth++] = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
	if (!depth)
		return ERROR_INVALID_CONTEXT;
	*context = stack[--depth];
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
	*context = current();
	return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
	if (!context)
		return ERROR_INVALID_VALUE;
	*id = context->uid;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	if (!current())
		return ERROR_INVALID_CONTEXT;
	*device = current()->device;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *text, int size, CUdevice device)
{
	snprintf(text, (size_t)size, "0000:%02x:00.0", 0x1b + device);
	return CUDA_SUCCESS;
}

/* A GPU of ten multiprocessors, each with room for 1024 threads. */
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
	(void)device;
	*value = attribute == 16 ? 10 : attribute == 39 ? 1024 : 0;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads, size_t shared)
{
	if (!function || threads <= 0 || threads > 1024 || shared)
		return ERROR_INVALID_VALUE;
	*blocks = 1024 / threads;
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	struct CUctx_st *context = current();
	struct trace t;

	enter(&t, CALL_cuCtxSynchronize, NULL);
	if (!context)
		return leave(&t, ERROR_INVALID_CONTEXT);
	for (struct CUstream_st *s = first_stream(context); s; s = s->next) {
		if (stream_valid(s))
			wait_until_done(s);
	}
	return leave(&t, CUDA_SUCCESS);
}

/* ---- streams of the program ---- */

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
	const struct {
		CUstream *stream;
		unsigned int flags;
		int priority;
	} p = {stream, flags, priority};
	struct trace t;

	enter(&t, CALL_cuStreamCreateWithPriority, &p);
	if (!current())
		return leave(&t, ERROR_INVALID_CONTEXT);
	*stream = calloc(1, sizeof(**stream));
	if (!*stream)
		abort();
	init_stream(*stream, current(), priority);
	return leave(&t, CUDA_SUCCESS);
}

/* Not for programs: cuStreamCreateWithPriority() is. */
CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	if (getenv("STANDIN_NO_TOUCHES"))
		return 2; /* CUDA_ERROR_OUT_OF_MEMORY */
	if (!current())
		return ERROR_INVALID_CONTEXT;
	if (flags != STREAM_NON_BLOCKING)
		violation("a stream of the library waits for the default stream");
	*stream = calloc(1, sizeof(**stream));
	if (!*stream)
		abort();
	init_stream(*stream, current(), 0);
	(*stream)->touches = true;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
	const struct CUstream_st *s = stream_of(stream, false);

	if (!s)
		return ERROR_INVALID_HANDLE;
	*priority = s->priority;
	return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	const struct {
		CUstream stream;
	} p = {stream};
	struct trace t;

	enter(&t, CALL_cuStreamDestroy_v2, &p);
	end_stream(stream); /* memory stays, so that a use of the handle is seen */
	return leave(&t, CUDA_SUCCESS);
}

CUresult cuStreamSynchronize(CUstream stream)
{
	const struct {
		CUstream stream;
	} p = {stream};
	struct trace t;

	enter(&t, CALL_cuStreamSynchronize, &p);
	return leave(&t, wait_until_done(stream_of(stream, false)));
}

CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
	const struct {
		CUstream stream;
	} p = {stream};
	struct trace t;

	enter(&t, CALL_cuStreamSynchronize_ptsz, &p);
	return leave(&t, wait_until_done(stream_of(stream, true)));
}

static CUresult query(struct CUstream_st *s)
{
	CUresult result;

	__atomic_fetch_add(&queries, 1, __ATOMIC_RELAXED);
	if (!s)
		return ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&mutex);
	if (s->capturing || (s == &s->context->legacy && captures))
		violation("a query during a capture");
	result = s->done == s->put ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
	pthread_mutex_unlock(&mutex);
	return result;
}

CUresult cuStreamQuery(CUstream stream)
{
	const struct {
		CUstream stream;
	} p = {stream};
	struct trace t;

	enter(&t, CALL_cuStreamQuery, &p);
	return leave(&t, query(stream_of(stream, false)));
}

CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
	struct CUstream_st *s = stream_of(stream, false);
	CUresult result = CUDA_SUCCESS;

	if (!s)
		return ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&mutex);
	*status = s->capturing;
	if (s == &s->context->legacy && captures)
		result = ERROR_CAPTURE_IMPLICIT;
	pthread_mutex_unlock(&mutex);
	return result;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
	const struct {
		CUstream stream;
		int mode;
	} p = {stream, mode};
	struct CUstream_st *s;
	struct trace t;

	enter(&t, CALL_cuStreamBeginCapture_v2, &p);
	s = stream_of(stream, false);
	if (!s || s == &s->context->legacy)
		return leave(&t, ERROR_INVALID_VALUE);
	pthread_mutex_lock(&mutex);
	s->graph = calloc(1, sizeof(*s->graph));
	s->capturing = true;
	captures++;
	pthread_mutex_unlock(&mutex);
	return leave(&t, CUDA_SUCCESS);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	const struct {
		CUstream stream;
		CUgraph *graph;
	} p = {stream, graph};
	struct CUstream_st *s;
	struct trace t;

	enter(&t, CALL_cuStreamEndCapture, &p);
	s = stream_of(stream, false);
	if (!s || !s->capturing)
		return leave(&t, ERROR_INVALID_VALUE);
	pthread_mutex_lock(&mutex);
	*graph = s->graph;
	s->capturing = false;
	captures--;
	pthread_mutex_unlock(&mutex);
	return leave(&t, CUDA_SUCCESS);
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
	*mode = 0;
	return CUDA_SUCCESS;
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, uint32_t value, unsigned int flags)
{
	(void)flags;
	if (getenv("STANDIN_NO_MARKERS"))
		return 801; /* CUDA_ERROR_NOT_SUPPORTED */
	if (getpid() != process)
		violation("a marker in a forked child");
	return put(stream_of(stream, false),
		   (struct op){.work = WRITE_VALUE, .to = (void *)(uintptr_t)address, .value = value});
}

/* ---- graphs ---- */

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	(void)flags;
	*exec = calloc(1, sizeof(**exec));
	if (!*exec)
		abort();
	(*exec)->graph = *graph;
	return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	const struct {
		CUgraphExec exec;
		CUstream stream;
	} p = {exec, stream};
	struct CUstream_st *s;
	struct trace t;

	enter(&t, CALL_cuGraphLaunch, &p);
	s = stream_of(stream, false);
	if (!s)
		return leave(&t, ERROR_INVALID_HANDLE);
	pthread_mutex_lock(&mutex);
	for (size_t i = 0; i < exec->graph.count; i++)
		put_locked(s, &exec->graph.ops[i]);
	pthread_mutex_unlock(&mutex);
	return leave(&t, CUDA_SUCCESS);
}

/* ---- kernels and copies ---- */

CUfunction standin_kernel(long us)
{
	CUfunction f = calloc(1, sizeof(*f));

	if (!f)
		abort();
	f->us = us;
	return f;
}

static struct op kernel_of(CUfunction f, void **parameters)
{
	struct op op = {.work = KERNEL, .us = f->us};

	memcpy(&op.to, parameters[0], sizeof(op.to));
	memcpy(&op.value, parameters[1], sizeof(op.value));
	return op;
}

struct launch { /* cuLaunchKernel_params */
	CUfunction f;
	unsigned int dimensions[6];
	unsigned int shared;
	CUstream stream;
	void **parameters;
	void **extra;
};

static CUresult launch(enum standin_call call, const struct launch *p, bool per_thread)
{
	struct trace t;

	enter(&t, call, p);
	if (!p->f || p->dimensions[0] == 0)
		return leave(&t, ERROR_INVALID_VALUE);
	return leave(&t, put(stream_of(p->stream, per_thread), kernel_of(p->f, p->parameters)));
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
			unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **parameters,
			void **extra)
{
	const struct launch p = {f, {gx, gy, gz, bx, by, bz}, shared, stream, parameters, extra};

	return launch(CALL_cuLaunchKernel, &p, false);
}

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
			     unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **parameters,
			     void **extra)
{
	const struct launch p = {f, {gx, gy, gz, bx, by, bz}, shared, stream, parameters, extra};

	return launch(CALL_cuLaunchKernel_ptsz, &p, true);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
				   unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
				   void **parameters)
{
	const struct launch p = {f, {gx, gy, gz, bx, by, bz}, shared, stream, parameters, NULL};

	return launch(CALL_cuLaunchCooperativeKernel, &p, false);
}

CUresult cuLaunchKernelEx(const struct standin_config *config, CUfunction f, void **parameters, void **extra)
{
	const struct {
		const struct standin_config *config;
		CUfunction f;
		void **parameters;
		void **extra;
	} p = {config, f, parameters, extra};
	struct trace t;

	enter(&t, CALL_cuLaunchKernelEx, &p);
	return leave(&t, put(stream_of(config->stream, false), kernel_of(f, parameters)));
}

CUresult standin_launch(long us, CUstream stream, void **parameters)
{
	return cuLaunchKernel(standin_kernel(us), 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	const struct {
		CUdeviceptr to;
		CUdeviceptr from;
		size_t bytes;
		CUstream stream;
	} p = {to, from, bytes, stream};
	struct trace t;

	enter(&t, CALL_cuMemcpyAsync, &p);
	return leave(&t, put(stream_of(stream, false), (struct op){.work = COPY_BYTES,
								   .to = (void *)(uintptr_t)to,
								   .from = (const void *)(uintptr_t)from,
								   .bytes = bytes}));
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
	const struct {
		void *to;
		CUdeviceptr from;
		size_t bytes;
	} p = {to, from, bytes};
	struct trace t;
	CUresult result;

	enter(&t, CALL_cuMemcpyDtoH_v2, &p);
	result = put(stream_of(NULL, false),
		     (struct op){.work = COPY_BYTES, .to = to, .from = (const void *)(uintptr_t)from, .bytes = bytes});
	if (result == CUDA_SUCCESS)
		result = wait_until_done(stream_of(NULL, false));
	return leave(&t, result);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
	const struct {
		CUdeviceptr to;
		unsigned char value;
		size_t bytes;
		CUstream stream;
	} p = {to, value, bytes, stream};
	struct trace t;

	enter(&t, CALL_cuMemsetD8Async, &p);
	return leave(&t,
		     put(stream_of(stream, false),
			 (struct op){.work = SET_BYTES, .to = (void *)(uintptr_t)to, .value = value, .bytes = bytes}));
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t words, CUstream stream)
{
	struct CUstream_st *s = stream_of(stream, false);

	if (!s || words != 1)
		return ERROR_INVALID_VALUE;
	if (getpid() != process)
		violation("a touch in a forked child");
	if (!s->touches || s->context != current())
		violation("a touch on a stream of the program, or of another context");
	pthread_mutex_lock(&mutex);
	if (captures)
		violation("a touch during a capture");
	pthread_mutex_unlock(&mutex);
	__atomic_fetch_add(&touches, 1, __ATOMIC_RELAXED);
	return put(s, (struct op){.work = SET_WORD,
				  .us = getenv("STANDIN_TOUCH_US") ? atol(getenv("STANDIN_TOUCH_US")) : 0,
				  .to = (void *)(uintptr_t)to,
				  .value = value});
}

/* ---- events ---- */

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	(void)flags;
	*event = calloc(1, sizeof(**event));
	if (!*event)
		abort();
	(*event)->magic = MAGIC;
	return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	const struct {
		CUevent event;
		CUstream stream;
	} p = {event, stream};
	struct CUstream_st *s;
	struct op op = {.work = RECORD_EVENT, .to = event};
	struct trace t;

	enter(&t, CALL_cuEventRecord, &p);
	s = stream_of(stream, false);
	if (!s)
		return leave(&t, ERROR_INVALID_HANDLE);
	pthread_mutex_lock(&mutex);
	op.value = ++event->recorded;
	put_locked(s, &op);
	pthread_mutex_unlock(&mutex);
	return leave(&t, CUDA_SUCCESS);
}

CUresult cuEventSynchronize(CUevent event)
{
	const struct {
		CUevent event;
	} p = {event};
	struct trace t;
	uint64_t number;

	enter(&t, CALL_cuEventSynchronize, &p);
	pthread_mutex_lock(&mutex);
	number = event->recorded;
	while (event->done < number)
		pthread_cond_wait(&change, &mutex);
	pthread_mutex_unlock(&mutex);
	return leave(&t, CUDA_SUCCESS);
}

CUresult cuEventQuery(CUevent event)
{
	const struct {
		CUevent event;
	} p = {event};
	struct trace t;
	CUresult result;

	enter(&t, CALL_cuEventQuery, &p);
	pthread_mutex_lock(&mutex);
	result = event->done == event->recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
	pthread_mutex_unlock(&mutex);
	return leave(&t, result);
}

CUresult cuEventDestroy_v2(CUevent event)
{
	const struct {
		CUevent event;
	} p = {event};
	struct trace t;

	enter(&t, CALL_cuEventDestroy_v2, &p);
	event->magic = 0;
	return leave(&t, CUDA_SUCCESS);
}

/* ---- memory: what the host sees is what the device sees ---- */

CUresult cuMemHostRegister_v2(void *memory, size_t size, unsigned int flags)
{
	(void)size;
	if (!current() || !(flags & MEMHOSTREGISTER_DEVICEMAP) || (uintptr_t)memory % 4096)
		return ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *memory)
{
	return memory ? CUDA_SUCCESS : ERROR_INVALID_VALUE;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *memory, unsigned int flags)
{
	if (flags)
		return ERROR_INVALID_VALUE;
	*device = (CUdeviceptr)(uintptr_t)memory;
	return CUDA_SUCCESS;
}
