/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg_sim.h - an application's side of the virtual GPU (gpuseg-vgpu). Link with -lgpuseg_sim.
 *
 * The virtual GPU stands in for a real one in tests and in the demo. A kernel is a duration: it occupies the engine for
 * that long, in turns with the kernels of other processes, and not at all while its process is disabled. Every result
 * obtained with it is simulated and has to be labelled so.
 *
 *   gpuseg_sim *gpu;
 *   uint64_t fence;
 *   int rc = gpuseg_sim_open(NULL, &gpu);
 *   if (rc == 0)
 *           rc = gpuseg_sim_submit(gpu, 4000000, &fence);                          // 4 ms of device time
 *   if (rc == 0)
 *           rc = gpuseg_sim_wait(gpu, fence, GPUSEG_SIM_BLOCK, -1);
 *   gpuseg_sim_close(gpu);
 *
 * Every function returns 0 or a negative errno. Times are nanoseconds; absolute ones of CLOCK_MONOTONIC. All functions
 * may be called from any thread, several at a time on one handle, save gpuseg_sim_close(). A handle does not survive
 * fork(): the virtual GPU knows the process that opened it, and a child has to open its own.
 */
#ifndef GPUSEG_SIM_H
#define GPUSEG_SIM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) && !defined(GPUSEG_SIM_EXPORT)
#define GPUSEG_SIM_EXPORT __attribute__((visibility("default")))
#elif !defined(GPUSEG_SIM_EXPORT)
#define GPUSEG_SIM_EXPORT
#endif

/* One connection to a virtual GPU. All connections of a process share that process's context. Opaque. */
typedef struct gpuseg_sim gpuseg_sim;

/* How gpuseg_sim_wait() passes the time. */
enum gpuseg_sim_wait_mode {
	GPUSEG_SIM_BLOCK = 0, /* sleep: the thread gives its CPU up (self-suspension) */
	GPUSEG_SIM_BUSY = 1   /* spin: the thread keeps its CPU (busy waiting) */
};

/*
 * Connects to the virtual GPU and creates the process's context there, if this is its first connection.
 *
 * @directory  runtime directory that holds vgpu.sock; NULL: $GPUSEG_DIR, else /dev/shm/gpuseg for root, else
 *             $XDG_RUNTIME_DIR/gpuseg, else /dev/shm/gpuseg-<uid>
 * @sim        receives the handle, which the caller owns and closes with gpuseg_sim_close(); NULL on failure
 *
 *   -EINVAL        sim is NULL
 *   -ENAMETOOLONG  the socket's path does not fit into a socket address (107 bytes)
 *   -ENOENT, -ECONNREFUSED  no virtual GPU runs there
 *   -EPROTO        what answers there is no virtual GPU of this version
 *   -ECONNRESET    it refused: too many connections
 *   others         of socket(2), connect(2), mmap(2); -ENOMEM
 */
GPUSEG_SIM_EXPORT int gpuseg_sim_open(const char *directory, gpuseg_sim **sim);

/*
 * Hands a kernel over and returns without waiting for it. Kernels of one process run in the order of submission. When
 * 128 kernels of the connection are unfinished, the call waits for room, as it would before a full ring buffer.
 *
 * @duration_ns  device time, 0 to 24 hours (an "endless" kernel)
 * @fence        receives the number of the kernel for gpuseg_sim_wait(): 1, 2, 3 ... per connection; may be NULL
 *
 *   -EINVAL  sim is NULL or the duration out of range
 *   -ENODEV  the virtual GPU is gone
 */
GPUSEG_SIM_EXPORT int gpuseg_sim_submit(gpuseg_sim *sim, int64_t duration_ns, uint64_t *fence);

/*
 * Waits until the kernel `fence` and so every earlier one of this connection is complete.
 *
 * @mode        GPUSEG_SIM_BLOCK or GPUSEG_SIM_BUSY
 * @timeout_ns  how long at most; negative: without limit; 0: only look
 *
 *   -EINVAL     sim is NULL, the mode is unknown or the fence was never handed out
 *   -ETIMEDOUT  it is not complete yet
 *   -ENODEV     the virtual GPU is gone, so it never will be; noticed within 100 ms
 */
GPUSEG_SIM_EXPORT int gpuseg_sim_wait(gpuseg_sim *sim, uint64_t fence, enum gpuseg_sim_wait_mode mode,
				      int64_t timeout_ns);

/*
 * The newest completed kernel and the time at which it ended on the device, which is exact: it does not contain the
 * time that the virtual GPU or the caller took to notice. Both are 0 before the first completion. Either pointer may be
 * NULL. While a later kernel is just completing, the time may be that one's already; with none outstanding the pair is
 * exact.
 *
 *   -EINVAL  sim is NULL
 */
GPUSEG_SIM_EXPORT int gpuseg_sim_completed(gpuseg_sim *sim, uint64_t *fence, int64_t *completed_ns);

/*
 * Closes the connection; its unfinished kernels are abandoned, and with the process's last connection its context goes.
 * No other call may be in progress on the handle. NULL is allowed and does nothing.
 */
GPUSEG_SIM_EXPORT void gpuseg_sim_close(gpuseg_sim *sim);

#ifdef __cplusplus
}
#endif

#endif /* GPUSEG_SIM_H */
