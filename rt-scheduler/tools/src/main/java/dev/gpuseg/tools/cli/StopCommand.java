/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.daemon.launch.DirectoryOption;
import dev.gpuseg.daemon.launch.ExitCode;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.StatusPage;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.tools.client.AdminClient;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** Stops the daemon and waits until it is gone. */
@Command(name = "stop", mixinStandardHelpOptions = true,
    description = "Stop the daemon and return when it has ended. Exit status 3: no daemon runs.")
final class StopCommand implements Callable<Integer> {
    private static final long LIMIT_NS = 10_000_000_000L;
    private static final long POLL_MS = 10;

    @Spec
    private CommandSpec spec;

    @Mixin
    private DirectoryOption directory;

    @Override
    public Integer call() throws InterruptedException {
        final RuntimeDirectory where = directory.find();
        try {
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
            return ExitCode.OK;
        } catch (final AdminClient.NoDaemonException e) {
            spec.commandLine().getOut().println(e.getMessage());
            spec.commandLine().getOut().flush();
            return ExitCode.NO;
        }
    }
}
