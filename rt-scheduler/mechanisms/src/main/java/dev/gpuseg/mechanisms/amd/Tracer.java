/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.platform.Descriptor;
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
 * The one thread that traces. The kernel asks who the tracer is by thread, not by process, so all that needs the
 * right happens here, in order. PTRACE_SEIZE does not stop the process; its signals come by here, though, and are
 * passed on within about a millisecond, and it cannot be traced by anybody else.
 *
 * <p>A page of memory ({@code struct gpuseg_amd_rescue}) lets the watchdog ask this thread to bring everything back
 * when dispatcher or enforcer hang. It cannot help against a daemon that is stopped as a whole.
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
    private static final int ESRCH = 3;
    private static final int ECHILD = 10;
    private static final long BUSY_NS = 1_000_000;
    private static final long IDLE_NS = 20_000_000;
    private static final long CALL_MS = 900;
    private static final int RESCUE_BYTES = 64;

    private final ConcurrentLinkedQueue<Runnable> work = new ConcurrentLinkedQueue<>();
    private final Set<Integer> traced = new LinkedHashSet<>();   // this thread
    private final int[] status = new int[1];
    private final Runnable bringBack;
    private final int pageFd;
    private final MappedByteBuffer mapping;
    private final UnsafeBuffer page;
    private final Thread thread;
    private volatile boolean running = true;

    /** {@code bringBack} is called on the thread, when the watchdog asks and at the end. */
    Tracer(final Runnable bringBack) {
        this.bringBack = bringBack;
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
        page.putInt(0, Abi.ABI_VERSION);
        thread = new Thread(this::run, "gpuseg-amd-tracer");
        thread.setDaemon(true);
        thread.start();
    }

    int pageFd() {
        return pageFd;
    }

    /** Runs something there; null if it did not come to its end in time (it will, later) or threw. */
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

    /** On the thread: 0 or -errno. */
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
            passOn();
            rescue();
            if (work.isEmpty()) {
                LockSupport.parkNanos(this, traced.isEmpty() ? IDLE_NS : BUSY_NS);
            }
        }
        bringBack.run();
        // the end of this thread lets go of all it traces
    }

    private void rescue() {
        final int asked = page.getIntVolatile(Integer.BYTES);   // W watchdog
        if (asked != page.getInt(2 * Integer.BYTES)) {
            bringBack.run();
            page.putIntOrdered(2 * Integer.BYTES, asked);       // release; the watchdog waits for it
        }
    }

    /** Stops of the traced are ended as if nobody traced. */
    private void passOn() {
        traced.removeIf(pid -> {
            final int got = AmdCalls.waitpid(pid, status, WNOHANG_ALL);
            if (got == 0) {
                return false;
            }
            if (got < 0) {
                return got == -ECHILD;   // it is gone, or another thread of ours waited for it
            }
            if ((status[0] & BYTE) != STOPPED) {
                return true;   // it ended
            }
            final int signal = status[0] >>> Byte.SIZE & BYTE;
            final int event = status[0] >>> EVENT_SHIFT;
            final boolean groupStop = event == EVENT_STOP && signal != SIGTRAP;
            return AmdCalls.ptrace(groupStop ? LISTEN : CONT, pid, event == 0 ? signal : 0) == -ESRCH
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
