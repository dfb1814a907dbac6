/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decoder.cu - a language model that generates token by token from C++, without graphs: 675 launches on the default
 * stream for each token, most of some microseconds, then the token goes to the host. For cells.py.
 *
 *   gpuseg-inject-decoder --jobs N --period MS [--marks]    one line of JSON: response times in ns, a digest of tokens
 *   gpuseg-inject-decoder --page FILE                       without end; counts its tokens in the page
 *
 * It knows nothing of gpuseg, except with --marks: segments by hand, for comparison. Weights are random.
 */
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <vector>

#include "gpuseg.h"
#include "check.cuh"

static constexpr int LAYERS = 32, WIDTH = 2048, WIDE = 4 * WIDTH, WORDS = 32000, PER_LAYER = 7, THREADS = 256;
static constexpr int WARM_UP = 20, PAGE_BYTES = 4096;

static int64_t now_ns()
{
	timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

/* ---- kernels ---- */

__global__ void fill(float *w, size_t n, uint32_t seed, float scale)
{
	for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
		uint32_t x = uint32_t(i) * 2654435761u ^ seed;

		x ^= x >> 15;
		x *= 2246822519u;
		x ^= x >> 13;
		w[i] = (float(x >> 8) / float(1 << 24) - 0.5f) * scale;
	}
}

__device__ float sum_of_block(float v)
{
	__shared__ float parts[THREADS / 32];

	for (int d = 16; d; d /= 2)
		v += __shfl_down_sync(~0u, v, d);
	if (threadIdx.x % 32 == 0)
		parts[threadIdx.x / 32] = v;
	__syncthreads();
	v = 0;
	for (int i = 0; i < THREADS / 32; i++)
		v += parts[i];
	__syncthreads();
	return v;
}

/* y = W x; a block for each row. */
__global__ void product(float *y, const float *w, const float *x, int columns)
{
	const float4 *row = reinterpret_cast<const float4 *>(w + size_t(blockIdx.x) * columns);
	const float4 *v = reinterpret_cast<const float4 *>(x);
	float sum = 0;

	for (int i = threadIdx.x; i < columns / 4; i += THREADS)
		sum += row[i].x * v[i].x + row[i].y * v[i].y + row[i].z * v[i].z + row[i].w * v[i].w;
	sum = sum_of_block(sum);
	if (threadIdx.x == 0)
		y[blockIdx.x] = sum;
}

__global__ void norm(float *y, const float *x, int n)
{
	float sum = 0;

	for (int i = threadIdx.x; i < n; i += THREADS)
		sum += x[i] * x[i];
	sum = rsqrtf(sum_of_block(sum) / n + 1e-6f);
	for (int i = threadIdx.x; i < n; i += THREADS)
		y[i] = x[i] * sum;
}

__global__ void add(float *x, const float *y)
{
	x[blockIdx.x * THREADS + threadIdx.x] += y[blockIdx.x * THREADS + threadIdx.x];
}

__global__ void multiply(float *x, const float *y)
{
	x[blockIdx.x * THREADS + threadIdx.x] *= y[blockIdx.x * THREADS + threadIdx.x];
}

__global__ void gate(float *x)
{
	const float v = x[blockIdx.x * THREADS + threadIdx.x];

	x[blockIdx.x * THREADS + threadIdx.x] = v / (1 + expf(-v));
}

__global__ void rotate(float *x, int at)
{
	const int i = blockIdx.x * THREADS + threadIdx.x;
	const float angle = float(at) * powf(1e4f, -float(i) / WIDTH), a = x[2 * i], b = x[2 * i + 1];

	x[2 * i] = a * cosf(angle) - b * sinf(angle);
	x[2 * i + 1] = a * sinf(angle) + b * cosf(angle);
}

__global__ void embed(float *x, const float *words, const int *token)
{
	const int i = blockIdx.x * THREADS + threadIdx.x;

	x[i] = words[size_t(*token) * WIDTH + i];
}

/* One block; the first of equal ones. */
__global__ void largest(int *token, const float *logits)
{
	__shared__ float best[THREADS];
	__shared__ int at[THREADS];

	best[threadIdx.x] = -1e30f;
	at[threadIdx.x] = 0;
	for (int i = threadIdx.x; i < WORDS; i += THREADS) {
		if (logits[i] > best[threadIdx.x]) {
			best[threadIdx.x] = logits[i];
			at[threadIdx.x] = i;
		}
	}
	__syncthreads();
	if (threadIdx.x == 0) {
		for (int i = 1; i < THREADS; i++) {
			if (best[i] > best[0] || (best[i] == best[0] && at[i] < at[0])) {
				best[0] = best[i];
				at[0] = at[i];
			}
		}
		*token = at[0];
	}
}

/* ---- the model ---- */

static struct {
	float *weights[LAYERS][PER_LAYER], *words, *x, *y, *q, *k, *v, *up, *wide, *logits;
	int *token;
} model;

static float *floats(size_t n, uint32_t seed, float scale)
{
	float *p;

	CHECK(cudaMalloc(&p, n * sizeof(float)));
	fill<<<1024, THREADS>>>(p, n, seed, scale);
	return p;
}

static void prepare()
{
	const float scale = 3.4f / sqrtf(float(WIDTH));
	uint32_t seed = 1;

	for (auto &layer : model.weights) {
		for (int i = 0; i < PER_LAYER; i++)
			layer[i] = floats(size_t(WIDTH) * (i < 4 ? WIDTH : WIDE), seed++,
					  i == PER_LAYER - 1 ? scale / 2 : scale);
	}
	model.words = floats(size_t(WORDS) * WIDTH, seed++, 1);
	for (float **p : {&model.x, &model.y, &model.q, &model.k, &model.v})
		*p = floats(WIDTH, seed++, 1);
	model.up = floats(WIDE, seed++, 1);
	model.wide = floats(WIDE, seed++, 1);
	model.logits = floats(WORDS, seed++, 1);
	CHECK(cudaMalloc(&model.token, sizeof(int)));
	CHECK(cudaMemset(model.token, 0, sizeof(int)));
	CHECK(cudaDeviceSynchronize());
}

/* The next token; it depends on the one before and on where it is. */
static int decode(int at)
{
	int token;

	embed<<<WIDTH / THREADS, THREADS>>>(model.x, model.words, model.token);
	for (auto &w : model.weights) {
		norm<<<1, THREADS>>>(model.y, model.x, WIDTH);
		product<<<WIDTH, THREADS>>>(model.q, w[0], model.y, WIDTH);
		product<<<WIDTH, THREADS>>>(model.k, w[1], model.y, WIDTH);
		product<<<WIDTH, THREADS>>>(model.v, w[2], model.y, WIDTH);
		rotate<<<WIDTH / 2 / THREADS, THREADS>>>(model.q, at);
		rotate<<<WIDTH / 2 / THREADS, THREADS>>>(model.k, at);
		multiply<<<WIDTH / THREADS, THREADS>>>(model.q, model.k);
		norm<<<1, THREADS>>>(model.q, model.q, WIDTH);
		multiply<<<WIDTH / THREADS, THREADS>>>(model.q, model.v);
		product<<<WIDTH, THREADS>>>(model.y, w[3], model.q, WIDTH);
		add<<<WIDTH / THREADS, THREADS>>>(model.x, model.y);
		norm<<<1, THREADS>>>(model.y, model.x, WIDTH);
		product<<<WIDE, THREADS>>>(model.wide, w[4], model.y, WIDTH);
		product<<<WIDE, THREADS>>>(model.up, w[5], model.y, WIDTH);
		gate<<<WIDE / THREADS, THREADS>>>(model.wide);
		multiply<<<WIDE / THREADS, THREADS>>>(model.wide, model.up);
		norm<<<1, THREADS>>>(model.wide, model.wide, WIDE);
		product<<<WIDTH, THREADS>>>(model.y, w[6], model.wide, WIDE);
		add<<<WIDTH / THREADS, THREADS>>>(model.x, model.y);
		norm<<<1, THREADS>>>(model.x, model.x, WIDTH);
		multiply<<<WIDTH / THREADS, THREADS>>>(model.k, model.v);
	}
	product<<<WORDS, THREADS>>>(model.logits, model.words, model.x, WIDTH);
	largest<<<1, THREADS>>>(model.token, model.logits);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(&token, model.token, sizeof(token), cudaMemcpyDeviceToHost));
	return token;
}

/* ---- jobs ---- */

static gpuseg_task *marks()
{
	gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	gpuseg_client *client;
	gpuseg_task *task;

	attr.name = "decoder";
	attr.priority = 80;
	if (gpuseg_connect(nullptr, &client) < 0 || gpuseg_task_open(client, &attr, &task) < 0) {
		fprintf(stderr, "decoder: %s\n", gpuseg_last_message(nullptr));
		exit(1);
	}
	return task;
}

static int jobs(int count, double period_ms, bool marked)
{
	gpuseg_task *task = marked ? marks() : nullptr;
	const int64_t period_ns = int64_t(period_ms * 1e6);
	std::vector<int64_t> took;
	uint64_t digest = 14695981039346656037ull;
	int64_t at_ns = 0;

	for (int n = -WARM_UP; n < count; n++) {
		if (n <= 0)
			at_ns = now_ns();
		const timespec at = {time_t(at_ns / 1000000000), long(at_ns % 1000000000)};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
		const int64_t begin_ns = now_ns();
		if (task && gpuseg_begin(task) < 0)
			return 1;
		digest = (digest ^ uint64_t(decode(n + WARM_UP))) * 1099511628211ull;
		if (task)
			gpuseg_end(task);
		if (n >= 0)
			took.push_back(now_ns() - begin_ns);
		at_ns = std::max(at_ns + period_ns, now_ns());
	}
	printf("{\"digest\": \"%016llx\", \"took_ns\": [", static_cast<unsigned long long>(digest));
	for (size_t i = 0; i < took.size(); i++)
		printf("%s%lld", i ? ", " : "", static_cast<long long>(took[i]));
	printf("]}\n");
	return 0;
}

static int serve(const char *path)
{
	const int fd = open(path, O_RDWR);
	void *page = fd < 0 ? MAP_FAILED : mmap(nullptr, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED) {
		perror(path);
		return 1;
	}
	for (uint64_t n = 1;; n++) {
		decode(int(n % 2048));
		__atomic_store_n(static_cast<uint64_t *>(page), n, __ATOMIC_RELEASE);
	}
}

int main(int argc, char **argv)
{
	const char *page = nullptr;
	double period_ms = 0;
	bool marked = false;
	int count = 0;

	for (int i = 1; i < argc; i++) {
		const std::string option = argv[i];

		if (option == "--marks")
			marked = true;
		else if (option == "--jobs" && i + 1 < argc)
			count = atoi(argv[++i]);
		else if (option == "--period" && i + 1 < argc)
			period_ms = atof(argv[++i]);
		else if (option == "--page" && i + 1 < argc)
			page = argv[++i];
		else
			count = -1;
	}
	if (count < 0 || (!page && count < 1)) {
		fprintf(stderr, "usage: gpuseg-inject-decoder --jobs N --period MS [--marks] | --page FILE\n");
		return 2;
	}
	prepare();
	return page ? serve(page) : jobs(count, period_ms, marked);
}
