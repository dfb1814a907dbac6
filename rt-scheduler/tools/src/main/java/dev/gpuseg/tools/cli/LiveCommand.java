/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.command.DirectoryOption;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.daemon.http.Endpoint;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.platform.SeqPacketSocket;
import dev.gpuseg.ipc.platform.SystemCallException;
import dev.gpuseg.tools.client.AdminClient;
import dev.gpuseg.tools.live.LiveServer;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** The running daemon's last seconds in a browser. */
@Command(name = "live", mixinStandardHelpOptions = true,
    description = "Show the running daemon's timeline, response times and deadline misses in a browser, until Ctrl-C "
        + "or a minute after the daemon ended. Exit status 3: no daemon runs.",
    footer = "%nThe printed address contains a random word: only a reader who has it can see the page. The page is "
        + "served on 127.0.0.1 and loads nothing from elsewhere. From another machine: ssh -L PORT:127.0.0.1:PORT "
        + "HOST, and open the same address there.")
final class LiveCommand implements Callable<Integer> {
    private static final int CONNECT_MS = 5_000;
    /** It ends when no daemon has answered for this long: the next one is shown, too. Shorter in tests. */
    private static final Duration LINGER = Duration.ofSeconds(Integer.getInteger("gpuseg.live.linger", 60));

    @Spec
    private CommandSpec spec;

    @Mixin
    private DirectoryOption directory;

    @Option(names = "--port", paramLabel = "N", defaultValue = "0",
        description = "Port of 127.0.0.1, 0..65535; 0 takes any free port (default: ${DEFAULT-VALUE}).")
    private int port;

    @Override
    public Integer call() throws InterruptedException {
        if (port < 0 || port > 65_535) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--port is " + port + "; use 0..65535");
        }
        final RuntimeDirectory where = directory.find();
        final PrintWriter out = spec.commandLine().getOut();
        AdminClient.ask(where, AdminClient.command("status"));   // refuses to show nothing
        try (LiveServer server = new LiveServer(new Endpoint(port), since -> read(where, since))) {
            out.println("open " + server.address() + "   (Ctrl-C ends it)");
            out.flush();
            awaitEnd(where);
        }
        spec.commandLine().getErr().println("gpuseg: no daemon has answered in " + where.root() + " for "
            + LINGER.toSeconds() + " s; live ends");
        spec.commandLine().getErr().flush();
        return ExitCode.NO;
    }

    /** Until a signal ends the process, or the daemon is gone for good: another may follow it. */
    private void awaitEnd(final RuntimeDirectory where) throws InterruptedException {
        long seenNs = System.nanoTime();
        while (System.nanoTime() - seenNs < LINGER.toNanos()) {
            TimeUnit.SECONDS.sleep(1);
            if (answers(where)) {
                seenNs = System.nanoTime();
            }
        }
    }

    /** Whether somebody accepts connections: the socket of a killed daemon is still there. */
    private static boolean answers(final RuntimeDirectory where) {
        try (SeqPacketSocket socket = SeqPacketSocket.connect(where.socket(), CONNECT_MS)) {
            return socket != null;
        } catch (final SystemCallException e) {
            return false;
        }
    }

    private static String read(final RuntimeDirectory where, final long since) {
        return AdminClient.ask(where, AdminClient.command("live").put("since", since).put("columns", true)).toString();
    }
}
