/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.platform.Descriptor;
import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.mechanisms.Layouts;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.StandardOpenOption;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * The one thread that traces other processes. To the kernel a tracer is a thread, not a process, so every call that
 * needs a tracer is made here, in order. PTRACE_SEIZE does not stop the process, but its signals arrive here first and
 * are passed on within about a millisecond, and no other process can trace it.
 *
 * <p>Through a page of memory ({@code struct gpuseg_amd_rescue}) the watchdog asks this thread to resume all queues
 * when the dispatcher or the enforcer hangs. That does not help if the whole daemon is stopped.
 */
final class Tracer implements AutoCloseable {
    private static final int SEIZE = 0x4206;
    private static final int LISTEN = 0x4208;
    private static final int CONT = 7;
    private static final int WNOHANG_ALL = 1 | 0x40000000;
    private static final int STOPPED = 0x7f;
    private static final int BYTE = 0xff;
    private static final int EVENT_SHIFT = 16;
    private static final int EVENT_STOP = 128;
    private static final int SIGTRAP = 5;
    private static final long BUSY_NS = 1_000_000;
    private static final long IDLE_NS = 20_000_000;
    private static final long CALL_MS = 900;
    private static final int RESCUE_BYTES = 64;

    private final ConcurrentLinkedQueue<Runnable> work = new ConcurrentLinkedQueue<>();
    private final Set<Integer> traced = new LinkedHashSet<>();   // tracing thread
    private final int[] status = new int[1];
    private final Runnable resumeAll;
    private final int pageFd;
    private final MappedByteBuffer mapping;
    private final UnsafeBuffer page;
    private final Thread thread;
    private volatile boolean running = true;

    /** {@code resumeAll} is called on the tracing thread, when the watchdog asks for it and at the end. */
    Tracer(final Runnable resumeAll) {
        this.resumeAll = resumeAll;
        pageFd = Descriptor.createSealedMemory("gpuseg-amd-rescue", RESCUE_BYTES);
        try (FileChannel channel = FileChannel.open(Descriptor.path(pageFd), StandardOpenOption.READ,
            StandardOpenOption.WRITE)) {
            mapping = channel.map(FileChannel.MapMode.READ_WRITE, 0, RESCUE_BYTES);
        } catch (final IOException e) {
            Descriptor.close(pageFd);
            throw new UncheckedIOException(e);
        }
        mapping.order(ByteOrder.nativeOrder());
        page = new UnsafeBuffer(mapping);
        page.putInt(Layouts.AmdRescue.VERSION_OFFSET, Abi.ABI_VERSION);
        thread = new Thread(this::run, "gpuseg-amd-tracer");
        thread.setDaemon(true);
        thread.start();
    }

    int pageFd() {
        return pageFd;
    }

    /** Runs something on the tracing thread; null if that did not end in time (it will end later). */
    <T> T call(final Callable<T> what) {
        final FutureTask<T> task = new FutureTask<>(what);
        work.add(task);
        LockSupport.unpark(thread);
        try {
            return task.get(CALL_MS, TimeUnit.MILLISECONDS);
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
            return null;
        } catch (final ExecutionException e) {
            throw new IllegalStateException("tracer: " + e.getCause(), e.getCause());
        } catch (final TimeoutException e) {
            return null;
        }
    }

    /** On the tracing thread: 0 or -errno. */
    int seize(final int pid) {
        if (traced.contains(pid)) {
            return 0;
        }
        final int rc = AmdCalls.ptrace(SEIZE, pid, 0);
        if (rc == 0) {
            traced.add(pid);
        }
        return rc;
    }

    private void run() {
        while (running) {
            for (Runnable next = work.poll(); next != null; next = work.poll()) {
                next.run();
            }
            passOnSignals();
            rescue();
            if (work.isEmpty()) {
                LockSupport.parkNanos(this, traced.isEmpty() ? IDLE_NS : BUSY_NS);
            }
        }
        resumeAll.run();
        // the kernel detaches all traced processes when this thread ends
    }

    private void rescue() {
        final int asked = page.getIntVolatile(Layouts.AmdRescue.ASKED_OFFSET);   // writer: the watchdog
        if (asked != page.getInt(Layouts.AmdRescue.DONE_OFFSET)) {
            resumeAll.run();
            page.putIntOrdered(Layouts.AmdRescue.DONE_OFFSET, asked);   // release; the watchdog waits for it
        }
    }

    /** Ends the stops of traced processes as if they were not traced. */
    private void passOnSignals() {
        traced.removeIf(pid -> {
            final int got = AmdCalls.waitpid(pid, status, WNOHANG_ALL);
            if (got == 0) {
                return false;
            }
            if (got < 0) {
                return got == -Errno.ECHILD;   // it ended, or another thread of ours waited for it
            }
            if ((status[0] & BYTE) != STOPPED) {
                return true;   // it ended
            }
            final int signal = status[0] >>> Byte.SIZE & BYTE;
            final int event = status[0] >>> EVENT_SHIFT;
            final boolean groupStop = event == EVENT_STOP && signal != SIGTRAP;
            return AmdCalls.ptrace(groupStop ? LISTEN : CONT, pid, event == 0 ? signal : 0) == -Errno.ESRCH
                && !ProcessHandle.of(pid).isPresent();
        });
    }

    @Override
    public void close() {
        running = false;
        LockSupport.unpark(thread);
        try {
            thread.join(TimeUnit.SECONDS.toMillis(2));
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        Descriptor.close(pageFd);
    }
}
