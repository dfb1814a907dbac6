/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.jvm;

import dev.gpuseg.ipc.platform.BoundedFile;
import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.SystemCallException;
import dev.gpuseg.ipc.platform.ThreadControl;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/**
 * The daemon's threads that a real-time dispatcher may have to wait for. The JVM stops it at a safepoint until its VM
 * thread has done what it stopped for, and until every thread that executes Java code has noticed; compilers hold locks
 * that resolving a call takes. If these threads are ordinary ones, any user's busy threads delay them, and so the
 * dispatcher, whatever priority it has: up to 51 ms were measured under a flood of records on two processors.
 *
 * <p>So threads that work while all others stand still (the VM thread, a collector's) get the dispatcher's priority,
 * and every other one the lowest real-time priority: it precedes all ordinary threads of the machine, and no real-time
 * thread of an application waits for it. Threads that are started later inherit this, and child processes do.
 *
 * <p>Threads that follow GPU processes come before the compilers, one level higher: until they have looked, a process
 * that has just made its channels runs beside a real-time segment; and the one that closes what dead processes had
 * keeps the driver's lock meanwhile. So does the one that looks at the compilers ({@link CompilerTime}).
 */
public final class RuntimeThreads {
    /** Of threads that hold up the dispatcher only if they do not run at all. */
    public static final int LOWEST = 1;
    /** Of threads that follow GPU processes, of gpuseg-observer, and of the one that looks at the compilers. */
    public static final int FOLLOWERS = 2;
    private static final int SCHED_OTHER = 0;
    /** Field "policy" of /proc/PID/stat, counted from the state, which follows the name. */
    private static final int POLICY_FIELD = 38;

    private RuntimeThreads() {
    }

    /**
     * Gives all ordinary threads of this process their real-time priority. Real-time ones keep theirs.
     *
     * @param priority of the dispatcher, 1..99
     * @return threads that were changed
     * @throws SystemCallException if it is not permitted
     */
    public static int raise(final int priority) {
        int raised = 0;
        try (DirectoryStream<Path> threads = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
            for (final Path thread : threads) {
                raised += raise(thread, priority) ? 1 : 0;
            }
        } catch (final IOException e) {
            throw new UncheckedIOException("/proc/self/task: " + e.getMessage(), e);
        }
        return raised;
    }

    /**
     * The JVM's compilers.
     *
     * @return their kernel's ids
     */
    public static int[] compilers() {
        try (Stream<Path> threads = Files.list(Path.of("/proc/self/task"))) {
            return threads.filter(RuntimeThreads::isCompiler)
                .mapToInt(thread -> Integer.parseInt(thread.getFileName().toString())).toArray();
        } catch (final IOException e) {
            throw new UncheckedIOException("/proc/self/task: " + e.getMessage(), e);
        }
    }

    private static boolean isCompiler(final Path thread) {
        try {
            return compiles(BoundedFile.text(thread.resolve("comm"), StandardCharsets.UTF_8).strip());
        } catch (final IOException e) {
            return false;   // it ended meanwhile
        }
    }

    private static boolean raise(final Path thread, final int priority) throws IOException {
        try {
            final String stat = BoundedFile.text(thread.resolve("stat"), StandardCharsets.UTF_8);
            final int nameEnd = stat.lastIndexOf(')');
            final String name = stat.substring(stat.indexOf('(') + 1, nameEnd);
            if (policy(stat.substring(nameEnd + 2)) != SCHED_OTHER) {
                return false;
            }
            ThreadControl.realTime(Integer.parseInt(thread.getFileName().toString()), stopsTheOthers(name) ? priority
                : Math.min(priority, precedesCompilers(name) ? FOLLOWERS : LOWEST));
            return true;
        } catch (final IOException e) {
            if (Files.exists(thread)) {
                throw e;
            }
            return false;   // it ended meanwhile
        } catch (final SystemCallException e) {
            if (e.errno() == Errno.ESRCH) {
                return false;
            }
            throw e;
        }
    }

    private static int policy(final String fromState) {
        return Integer.parseInt(fromState.split(" ")[POLICY_FIELD]);
    }

    /** The kernel shows 15 characters of a name. */
    static boolean followsProcesses(final String name) {
        return name.equals("gpuseg-observer") || name.startsWith("gpuseg-nvidia-w")
            || name.startsWith("gpuseg-nvidia-c") || name.equals("gpuseg-amd-scan")
            || name.startsWith("gpuseg-tegra-s");
    }

    private static boolean precedesCompilers(final String name) {
        return followsProcesses(name) || name.equals(CompilerTime.NAME);
    }

    /** As HotSpot names its threads: "C2 CompilerThread0". */
    static boolean compiles(final String name) {
        return name.startsWith("C1 Compiler") || name.startsWith("C2 Compiler");
    }

    /** As HotSpot names its threads: the VM thread, the workers of a collector's pauses. */
    static boolean stopsTheOthers(final String name) {
        return name.equals("VM Thread") || name.startsWith("GC Thread") || name.startsWith("ParGC");
    }
}
