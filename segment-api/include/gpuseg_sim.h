/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg_sim.h - an application's side of the virtual GPU (gpuseg-vgpu). Link with -lgpuseg_sim.
 *
 * The virtual GPU replaces a real one in tests and in the demo. A kernel is a duration: it occupies the engine for that
 * long, taking turns with the kernels of other processes, and makes no progress while its process is disabled. Results
 * obtained with it are simulated and must be labelled as such.
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
 * Results. Every function except gpuseg_sim_close() returns 0 or a negative errno. Times are in nanoseconds; absolute
 * times are of CLOCK_MONOTONIC.
 *
 * Threads. Any thread may call any function, and several threads may use one handle at once. gpuseg_sim_close() must
 * not overlap with another call on the handle. A handle does not survive fork(): a child must open its own.
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

/* One connection to a virtual GPU. All connections of a process share its context. */
typedef struct gpuseg_sim gpuseg_sim;

/* How gpuseg_sim_wait() waits. */
enum gpuseg_sim_wait_mode {
	GPUSEG_SIM_BLOCK = 0, /* sleep: the thread releases its CPU (self-suspension) */
	GPUSEG_SIM_BUSY = 1   /* spin: the thread keeps its CPU (busy waiting) */
};

/*
 * Connect to the virtual GPU. The first connection of a process creates its context there.
 *
 * @directory  runtime directory that holds vgpu.sock; NULL: $GPUSEG_DIR, else /run/gpuseg if it exists, else
 *             /dev/shm/gpuseg for root, else $XDG_RUNTIME_DIR/gpuseg, else /dev/shm/gpuseg-<uid>
 * @sim        receives the handle, which the caller owns and closes with gpuseg_sim_close(); NULL after a failure
 *
 *   -EINVAL        sim is NULL
 *   -ENAMETOOLONG  the socket's path does not fit into a socket address (107 bytes)
 *   -ENOENT, -ECONNREFUSED  no virtual GPU is running there
 *   -EPROTO        the program that answered is not a virtual GPU of this version
 *   -ECONNRESET    the virtual GPU refused: too many connections
 *   -ENOMEM, and the errors of socket(2), connect(2) and mmap(2)
 */
GPUSEG_SIM_EXPORT int gpuseg_sim_open(const char *directory, gpuseg_sim **sim);

/*
 * Submit a kernel and return without waiting for it. Kernels of one process run in the order of submission. If 128
 * kernels of the connection are unfinished, the call waits until one finishes, as with a full ring buffer.
 *
 * @duration_ns  device time, 0 to 24 hours (an "endless" kernel)
 * @fence        receives the number of the kernel for gpuseg_sim_wait(): 1, 2, 3, ... per connection; may be NULL
 *
 *   -EINVAL  sim is NULL, or the duration is out of range
 *   -ENODEV  the virtual GPU has ended, or the program has closed the descriptor of the handle
 */
GPUSEG_SIM_EXPORT int gpuseg_sim_submit(gpuseg_sim *sim, int64_t duration_ns, uint64_t *fence);

/*
 * Wait until the kernel `fence`, and so every earlier one of this connection, is complete.
 *
 * @mode        GPUSEG_SIM_BLOCK or GPUSEG_SIM_BUSY
 * @timeout_ns  longest wait; negative: no limit; 0: do not wait
 *
 *   -EINVAL     sim is NULL, the mode is unknown, or no kernel has this number
 *   -ETIMEDOUT  it is not complete yet
 *   -ENODEV     the virtual GPU has ended, or the program has closed the descriptor of the handle: within 100 ms
 */
GPUSEG_SIM_EXPORT int gpuseg_sim_wait(gpuseg_sim *sim, uint64_t fence, enum gpuseg_sim_wait_mode mode,
				      int64_t timeout_ns);

/*
 * The newest completed kernel, and the time at which it ended on the device. The time is exact: it does not include the
 * time that the virtual GPU or the caller took to notice. Both are 0 before the first completion. Either pointer may be
 * NULL. While a later kernel is completing, the time may already be that of the later kernel.
 *
 *   -EINVAL  sim is NULL
 */
GPUSEG_SIM_EXPORT int gpuseg_sim_completed(gpuseg_sim *sim, uint64_t *fence, int64_t *completed_ns);

/*
 * Close the connection and abandon its unfinished kernels. The last connection of a process removes its context. No
 * other call may be in progress on the handle. NULL is allowed.
 */
GPUSEG_SIM_EXPORT void gpuseg_sim_close(gpuseg_sim *sim);

#ifdef __cplusplus
}
#endif

#endif /* GPUSEG_SIM_H */
