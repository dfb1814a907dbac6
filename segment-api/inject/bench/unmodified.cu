/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unmodified.cu - CUDA programs as users write them, for cells.py. They know nothing of gpuseg.
 *
 *   gpuseg-inject-unmodified digest
 *       Kernels on streams, a graph, copies, cooperative and extended launches, memsets. Prints a digest of results.
 *   gpuseg-inject-unmodified streams CASE JOBS SEED
 *       A stream of low priority that is never idle, and one of high priority with a short job now and then. CASE says
 *       what the low one does:
 *         kernels   kernels of 2 ms, up to 20 queued; both streams do not wait for the default stream
 *         default   the same on the default stream of the context, for which the high stream waits, as streams do
 *         copies    copies of 32 MiB to the GPU, up to 20 queued; the job of the high stream begins with a copy
 *         small     kernels of 100 us on a quarter of the multiprocessors, up to 20 queued, beside a busy high stream
 *         filling   the same on all of them
 *       A job: a kernel of 300 us, from before its launch until it is done; in the last two cases of 3 ms, on half of
 *       the room for blocks, 1 to 3 ms after the one before. Prints one line of JSON, times in ns.
 */
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.cuh"

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_until(int64_t at_ns)
{
	const struct timespec t = {(time_t)(at_ns / 1000000000), (long)(at_ns % 1000000000)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* ---- digest ---- */

#define WORDS (1 << 20)

__global__ void mix(uint32_t *words, uint32_t k)
{
	const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	uint32_t x = words[i] ^ k;

	for (int round = 0; round < 200; round++)
		x = x * 1664525u + 1013904223u + i;
	words[i] = x;
}

/* Each word takes the one that is half of the array away, after all are mixed. */
__global__ void mix_and_cross(uint32_t *words, uint32_t count, uint32_t k)
{
	const cooperative_groups::grid_group all = cooperative_groups::this_grid();
	const uint32_t step = gridDim.x * blockDim.x;

	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
		words[i] = words[i] * 2654435761u + k;
	all.sync();
	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count / 2; i += step) {
		const uint32_t a = words[i], b = words[i + count / 2];

		words[i] = b;
		words[i + count / 2] = a;
	}
}

static uint64_t digest_of(const uint32_t *words, uint64_t digest)
{
	for (int i = 0; i < WORDS; i++)
		digest = (digest ^ words[i]) * 1099511628211ull;
	return digest;
}

static int digest(void)
{
	uint64_t sum = 14695981039346656037ull;
	uint32_t *host, *words[4];
	uint32_t count = WORDS, k = 77;
	cudaStream_t streams[4];
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	CHECK(cudaMallocHost(&host, WORDS * sizeof(*host)));
	for (int s = 0; s < 4; s++) {
		CHECK(cudaMalloc(&words[s], WORDS * sizeof(*host)));
		CHECK(cudaStreamCreateWithFlags(&streams[s], s % 2 ? cudaStreamNonBlocking : cudaStreamDefault));
		CHECK(cudaMemsetAsync(words[s], s + 1, WORDS * sizeof(*host), streams[s]));
	}
	for (uint32_t i = 0; i < 2000; i++) {
		const int s = (int)(i % 4);

		mix<<<WORDS / 256, 256, 0, streams[s]>>>(words[s], i);
		if (i % 7 == 0)
			CHECK(cudaStreamSynchronize(streams[s]));
	}
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal));
	for (uint32_t i = 0; i < 50; i++)
		mix<<<WORDS / 256, 256, 0, streams[0]>>>(words[0], i);
	CHECK(cudaStreamEndCapture(streams[0], &graph));
	CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 40; i++) {
		CHECK(cudaGraphLaunch(exec, streams[0]));
		if (i % 10 == 9)
			CHECK(cudaStreamSynchronize(streams[0]));
	}
	void *arguments[] = {&words[1], &count, &k};
	CHECK(cudaLaunchCooperativeKernel((const void *)mix_and_cross, dim3(132), dim3(256), arguments, 0, streams[1]));
	cudaLaunchConfig_t config = {};
	config.gridDim = dim3(WORDS / 256);
	config.blockDim = dim3(256);
	config.stream = streams[2];
	CHECK(cudaLaunchKernelEx(&config, mix, words[2], 5u));
	for (int i = 0; i < 200; i++)
		mix<<<WORDS / 256, 256>>>(words[0], (uint32_t)i); /* the default stream; nobody synchronises */
	for (int s = 0; s < 4; s++) {
		CHECK(cudaMemcpyAsync(host, words[s], WORDS * sizeof(*host), cudaMemcpyDeviceToHost, streams[s]));
		CHECK(cudaStreamSynchronize(streams[s]));
		sum = digest_of(host, sum);
	}
	CHECK(cudaMemcpy(host, words[0], WORDS * sizeof(*host), cudaMemcpyDeviceToHost));
	sum = digest_of(host, sum);
	/* An error is the program's own. */
	mix<<<1, 4096>>>(words[0], 1);
	const cudaError_t error = cudaGetLastError();
	printf("{\"digest\": \"%016llx\", \"error\": \"%s\"}\n", (unsigned long long)sum, cudaGetErrorName(error));
	return 0;
}

/* ---- streams ---- */

#define QUEUED 20
#define LOW_NS 2000000
#define HIGH_NS 300000
#define SMALL_NS 100000
#define BUSY_NS 3000000	      /* what a job of a busy high stream takes */
#define LOW_BYTES (32u << 20) /* most; as many as LOW_NS take */
#define HIGH_BYTES (256u << 10)
#define JOBS_MAX 10000
#define WARM_UP 20
/* A job that takes longer was passed over by the work of the low stream, which then stops until the job is done. */
#define STARVED_NS 1000000000
#define STARVED_MOST 5 /* such jobs; the measurement ends with them */

/* Keeps every multiprocessor busy for this long. */
__global__ void spin(uint64_t *count, uint64_t ns)
{
	uint64_t begin, at;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
	do {
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(at));
	} while (at - begin < ns);
	if (blockIdx.x == 0 && threadIdx.x == 0)
		atomicAdd((unsigned long long *)count, 1ull);
}

static struct {
	const char *name;
	cudaStream_t low, high;
	unsigned int blocks, low_blocks;
	uint64_t high_ns, low_ns;
	uint64_t *counts; /* on the GPU: low, high */
	char *low_from, *low_to, *high_from, *high_to;
	size_t low_bytes;
	bool stop;
	uint64_t launched; /* on the low stream */
	int64_t job_ns;	   /* when the job began; 0 = none is under way */
} test;

static bool is(const char *name)
{
	return strcmp(test.name, name) == 0;
}

static bool starves(void)
{
	const int64_t began_ns = __atomic_load_n(&test.job_ns, __ATOMIC_ACQUIRE);

	return began_ns && now_ns() - began_ns > STARVED_NS;
}

static void *keep_low_busy(void *)
{
	cudaEvent_t done[QUEUED];

	CHECK(cudaSetDevice(0));
	for (int i = 0; i < QUEUED; i++)
		CHECK(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming | cudaEventBlockingSync));
	for (uint64_t n = 0; !__atomic_load_n(&test.stop, __ATOMIC_ACQUIRE); n++) {
		if (n >= QUEUED)
			CHECK(cudaEventSynchronize(done[n % QUEUED]));
		while (starves() && !__atomic_load_n(&test.stop, __ATOMIC_ACQUIRE))
			sleep_until(now_ns() + 1000000);
		if (is("copies"))
			CHECK(cudaMemcpyAsync(test.low_to, test.low_from, test.low_bytes, cudaMemcpyHostToDevice,
					      test.low));
		else
			spin<<<test.low_blocks, 1024, 0, test.low>>>(&test.counts[0], test.low_ns);
		CHECK(cudaGetLastError());
		CHECK(cudaEventRecord(done[n % QUEUED], test.low));
		__atomic_store_n(&test.launched, n + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static int ascending(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void job(void)
{
	if (is("copies"))
		CHECK(cudaMemcpyAsync(test.high_to, test.high_from, HIGH_BYTES, cudaMemcpyHostToDevice, test.high));
	spin<<<test.blocks, 1024, 0, test.high>>>(&test.counts[1], test.high_ns);
	CHECK(cudaGetLastError());
	CHECK(cudaStreamSynchronize(test.high));
}

/* How fast memory is copied differs by a hundred between machines. */
static size_t bytes_in(int64_t ns)
{
	int64_t took_ns = INT64_MAX;

	for (int i = 0; i < 5; i++) {
		const int64_t begin_ns = now_ns();

		CHECK(cudaMemcpyAsync(test.low_to, test.low_from, LOW_BYTES, cudaMemcpyHostToDevice, test.low));
		CHECK(cudaStreamSynchronize(test.low));
		if (now_ns() - begin_ns < took_ns)
			took_ns = now_ns() - begin_ns;
	}
	return took_ns > ns ? (size_t)((double)LOW_BYTES * (double)ns / (double)took_ns) : LOW_BYTES;
}

static int streams(int jobs, unsigned int seed)
{
	static int64_t took[WARM_UP + JOBS_MAX], alone[JOBS_MAX];
	int least, greatest, done = 0, starved = 0, begun = 0;
	uint64_t counts[2], low_at, low_from;
	cudaDeviceProp properties;
	pthread_t thread;
	int64_t begin_ns;

	CHECK(cudaGetDeviceProperties(&properties, 0));
	const bool busy = is("small") || is("filling");
	const unsigned int multiprocessors = (unsigned int)properties.multiProcessorCount;

	test.blocks = busy ? multiprocessors : multiprocessors * 2;
	test.low_blocks = is("small") ? multiprocessors / 4 : multiprocessors * 2;
	test.high_ns = busy ? BUSY_NS : HIGH_NS;
	test.low_ns = busy ? SMALL_NS : LOW_NS;
	CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	if (is("default")) {
		test.low = cudaStreamLegacy;
		CHECK(cudaStreamCreateWithPriority(&test.high, cudaStreamDefault, greatest));
	} else {
		CHECK(cudaStreamCreateWithPriority(&test.low, cudaStreamNonBlocking, least));
		CHECK(cudaStreamCreateWithPriority(&test.high, cudaStreamNonBlocking, greatest));
	}
	CHECK(cudaMalloc(&test.counts, 2 * sizeof(uint64_t)));
	CHECK(cudaMemset(test.counts, 0, 2 * sizeof(uint64_t)));
	CHECK(cudaMallocHost(&test.low_from, LOW_BYTES));
	CHECK(cudaMalloc(&test.low_to, LOW_BYTES));
	CHECK(cudaMallocHost(&test.high_from, HIGH_BYTES));
	CHECK(cudaMalloc(&test.high_to, HIGH_BYTES));
	test.low_bytes = bytes_in(LOW_NS);
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < jobs; i++) { /* alone */
		const int64_t at_ns = now_ns();

		job();
		alone[i] = now_ns() - at_ns;
	}
	pthread_create(&thread, NULL, keep_low_busy, NULL);
	while (__atomic_load_n(&test.launched, __ATOMIC_ACQUIRE) < 5)
		sleep_until(now_ns() + 1000000);
	low_from = __atomic_load_n(&test.launched, __ATOMIC_ACQUIRE);
	begin_ns = now_ns();
	for (int i = -WARM_UP; i < jobs && starved < STARVED_MOST; i++) {
		const int64_t rest_ns = busy ? 1000000 : 20000000;
		int64_t at_ns = now_ns() + rest_ns + rand_r(&seed) % (busy ? 2 * rest_ns : rest_ns);

		sleep_until(at_ns);
		at_ns = now_ns();
		__atomic_store_n(&test.job_ns, at_ns, __ATOMIC_RELEASE);
		begun++;
		job();
		__atomic_store_n(&test.job_ns, 0, __ATOMIC_RELEASE);
		took[done] = now_ns() - at_ns;
		starved += took[done] > STARVED_NS;
		done += i >= 0 || starved > 0; /* a starved one counts in any case */
	}
	const double seconds = (double)(now_ns() - begin_ns) / 1e9;
	low_at = __atomic_load_n(&test.launched, __ATOMIC_ACQUIRE);
	__atomic_store_n(&test.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(counts, test.counts, sizeof(counts), cudaMemcpyDeviceToHost));
	const uint64_t low_expected = is("copies") ? 0 : test.launched;
	const bool wrong = counts[1] != (uint64_t)(jobs + begun) || counts[0] != low_expected;
	qsort(took, (size_t)done, sizeof(took[0]), ascending);
	qsort(alone, (size_t)jobs, sizeof(alone[0]), ascending);
	printf("{\"case\": \"%s\", \"jobs\": %d, \"alone_p50_ns\": %lld, \"alone_p99_ns\": %lld, \"p50_ns\": %lld, "
	       "\"p99_ns\": %lld, \"max_ns\": %lld, \"starved\": %d, \"low_per_s\": %.1f, \"low_bytes\": %zu, "
	       "\"wrong\": %d}\n",
	       test.name, done, (long long)alone[jobs / 2], (long long)alone[jobs * 99 / 100],
	       (long long)took[done / 2], (long long)took[done * 99 / 100], (long long)took[done - 1], starved,
	       (double)(low_at - low_from) / seconds, test.low_bytes, wrong);
	return wrong;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "digest") == 0)
		return digest();
	if (argc == 5 && strcmp(argv[1], "streams") == 0) {
		const int jobs = atoi(argv[3]);

		test.name = argv[2];
		if ((is("kernels") || is("default") || is("copies") || is("small") || is("filling")) && jobs > 0 &&
		    jobs <= JOBS_MAX)
			return streams(jobs, (unsigned int)atoi(argv[4]));
	}
	fprintf(stderr, "usage: gpuseg-inject-unmodified digest | streams "
			"kernels|default|copies|small|filling JOBS SEED\n");
	return 2;
}
