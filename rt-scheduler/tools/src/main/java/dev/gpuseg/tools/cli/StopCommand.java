/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.command.DirectoryOption;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.StatusPage;
import dev.gpuseg.ipc.platform.FileAccess;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.tools.client.AdminClient;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Stops the daemon and waits until it is gone. */
@Command(name = "stop", mixinStandardHelpOptions = true,
    description = "Stop the daemon and return when it has ended. Exit status 3: no daemon runs.",
    footer = "%nThe journal stays in the runtime directory, for gpuseg trace record and the next daemon, which "
        + "continues it.")
final class StopCommand implements Callable<Integer> {
    private static final long LIMIT_NS = 10_000_000_000L;
    private static final long POLL_MS = 10;
    private static final String JOURNAL_RING = "journal.ring";
    private static final double MIB = 1 << 20;

    @Spec
    private CommandSpec spec;

    @Mixin
    private DirectoryOption directory;

    @Option(names = "--clean", description = "Then delete the journal in the runtime directory, also that of a daemon "
        + "that has ended already.")
    private boolean clean;

    @Override
    public Integer call() throws InterruptedException, IOException {
        final RuntimeDirectory where = directory.find();
        final PrintWriter out = spec.commandLine().getOut();
        int status = ExitCode.OK;
        try {
            stop(where);
        } catch (final AdminClient.NoDaemonException e) {
            out.println(e.getMessage());
            status = ExitCode.NO;
        }
        if (clean) {
            out.println(delete(where));
        } else if (status == ExitCode.OK && Files.exists(where.journal())) {
            out.printf("stopped; its journal stays in %s (%.1f MiB): gpuseg trace record saves it, gpuseg stop --clean "
                + "deletes it%n", where.journal(), bytes(where) / MIB);
        }
        out.flush();
        return status;
    }

    private static void stop(final RuntimeDirectory where) throws InterruptedException {
        final int pid;
        final long startTicks;
        AdminClient.ask(where, AdminClient.command("stop"));
        try (StatusPage page = StatusPage.open(where.status())) {
            pid = page.daemonPid();
            startTicks = page.daemonStartTicks();
        }
        final long limitNs = System.nanoTime() + LIMIT_NS;
        while (ProcessStatus.isAlive(pid, startTicks)) {
            if (System.nanoTime() - limitNs > 0) {
                throw new IllegalStateException("daemon " + pid + " does not stop; kill it, its watchdog "
                    + "then enables what it held");
            }
            TimeUnit.MILLISECONDS.sleep(POLL_MS);
        }
    }

    private static long bytes(final RuntimeDirectory where) throws IOException {
        long sum = 0;
        for (final Path kept : new Path[] {where.journal(), where.root().resolve(JOURNAL_RING)}) {
            if (Files.exists(kept)) {
                try (Stream<Path> files = Files.walk(kept)) {
                    for (final Path file : files.filter(Files::isRegularFile).toList()) {
                        sum += FileAccess.takenBytes(file);
                    }
                }
            }
        }
        return sum;
    }

    /** Under the lock that a daemon takes before it opens its journal. */
    private static String delete(final RuntimeDirectory where) throws IOException {
        final Path instance = where.lock();
        if (!Files.exists(instance)) {
            return "nothing to delete in " + where.root();
        }
        try (FileChannel channel = FileChannel.open(instance, StandardOpenOption.WRITE);
            FileLock lock = channel.tryLock()) {
            if (lock == null) {
                throw new IllegalStateException("a daemon owns " + where.root() + "; nothing was deleted");
            }
            final long freed = bytes(where);
            RuntimeDirectory.deleteTree(where.journal());
            Files.deleteIfExists(where.root().resolve(JOURNAL_RING));
            return String.format("deleted %s, %.1f MiB", where.journal(), freed / MIB);
        }
    }
}
