/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Opening queues sends no data: the artifact that would do so is absent, and no network socket is made. */
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class NoPhoneHomeTest {
    @TempDir
    private Path directory;

    /** What the child process does. */
    public static final class OpenQueues {
        private OpenQueues() {
        }

        public static void main(final String[] args) throws Exception {
            final QueueTemplate template = QueueTemplate.create(Path.of(args[0], "template"), ClientQueue.BYTES_MIN);
            try (Session session = Session.create(1, 1)) {
                ClientQueue.create(template, Path.of(args[0], "client"), 1, -1, -1, 1, session, () -> { }).close();
            }
            Thread.sleep(2500); // longer than the time limits of a report
            final StringBuilder sockets = new StringBuilder();
            try (var descriptors = Files.list(Path.of("/proc/self/fd"))) {
                for (final Path descriptor : descriptors.collect(Collectors.toList())) {
                    try {
                        sockets.append(Files.readSymbolicLink(descriptor)).append('\n');
                    } catch (final IOException e) {
                        sockets.append("closed\n"); // the listing's own descriptor
                    }
                }
            }
            Files.writeString(Path.of(args[0], "descriptors"), sockets);
            final StringBuilder tables = new StringBuilder();
            for (final String table : new String[] {"tcp", "tcp6", "udp", "udp6", "raw", "raw6"}) {
                final Path path = Path.of("/proc/self/net", table);
                tables.append(Files.exists(path) ? Files.readString(path) : "");
            }
            Files.writeString(Path.of(args[0], "tables"), tables);
            System.out.println("opened and closed");
        }
    }

    @Test
    void shouldNotHaveTheReportingArtifactOnTheClassPath() {
        assertThrows(ClassNotFoundException.class,
            () -> Class.forName("net.openhft.chronicle.analytics.Analytics"));
        assertFalse(System.getProperty("java.class.path").contains("chronicle-analytics"));
    }

    @Test
    void shouldMakeNoNetworkSocketWhenQueuesAreOpened() throws Exception {
        final Path trace = directory.resolve("trace");
        final Path home = Files.createDirectory(directory.resolve("home"));
        final List<String> command = new ArrayList<>();
        final boolean traced = Files.isExecutable(Path.of("/usr/bin/strace"));
        if (traced) {
            command.addAll(List.of("/usr/bin/strace", "-f", "-e", "trace=connect,sendto,sendmsg,bind", "-o",
                trace.toString()));
        }
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
            .filter(a -> a.startsWith("--") || a.startsWith("-Dchronicle") || a.startsWith("-Ddisable"))
            .forEach(command::add);
        command.addAll(List.of("-Duser.home=" + home, "-cp", System.getProperty("surefire.test.class.path",
            System.getProperty("java.class.path")), OpenQueues.class.getName(), directory.toString()));
        final String out = NativeTool.run(90, command.toArray(new String[0]));
        assertTrue(out.contains("opened and closed"), out);
        try (var files = Files.list(home)) {
            assertEquals(List.of(), files.filter(file -> file.getFileName().toString().startsWith(".chronicle"))
                .collect(Collectors.toList()), "files of a reporter in the home directory");
        }
        final String descriptors = Files.readString(directory.resolve("descriptors"));
        // the JDK itself keeps one end of a pair of Unix sockets, which is in none of these tables
        for (final String socket : descriptors.lines().filter(line -> line.startsWith("socket:[")).toList()) {
            final String inode = " " + socket.substring(8, socket.length() - 1) + " ";
            assertFalse(Files.readString(directory.resolve("tables")).contains(inode), "network socket" + inode);
        }
        if (traced) {
            final List<String> calls = Files.readAllLines(trace, StandardCharsets.ISO_8859_1).stream()
                .filter(line -> line.contains("AF_INET") || line.contains("AF_NETLINK"))
                .collect(Collectors.toList());
            assertEquals(List.of(), calls, "network calls");
        }
    }
}
