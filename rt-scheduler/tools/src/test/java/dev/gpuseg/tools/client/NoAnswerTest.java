/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.StatusPage;
import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.FileAccess;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.ipc.platform.SystemCallException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NoAnswerTest {
    private static final int STRANGER = 65_531;
    private static final String USER = System.getProperty("user.name");
    private static final String JOIN = "`sudo groupadd -rf gpuseg && sudo usermod -aG gpuseg " + USER
        + "`, restart the daemon, log in again";

    @TempDir
    private Path parent;
    private RuntimeDirectory directory;

    @BeforeEach
    void listen() throws IOException {
        directory = RuntimeDirectory.resolve(parent.resolve("run").toString());
        directory.create();
        Files.createFile(directory.socket());
    }

    private IllegalStateException answer(final int errno) {
        return NoAnswer.of(directory, new SystemCallException("connect", directory.socket().toString(), errno));
    }

    private String notServed(final int uid, final int gid) {
        FileAccess.chown(directory.socket(), uid, gid);
        final IllegalStateException thrown = assertInstanceOf(AdminClient.NotServedException.class,
            answer(Errno.EACCES));
        return thrown.getMessage();
    }

    @Test
    void shouldSayThatNoneRunsWhereNoneShowsThatItIsAlive() {
        for (final int errno : new int[] {Errno.ENOENT, Errno.ECONNREFUSED, Errno.EACCES}) {
            final String none = assertInstanceOf(AdminClient.NoDaemonException.class, answer(errno)).getMessage();
            assertTrue(none.startsWith("no daemon answers in " + directory.root() + " (")
                && none.contains("start one with `gpuseg run`"), none);
        }
        try (StatusPage page = StatusPage.create(directory.status(), 1, "fp", "sim", 3)) {
            page.heartbeat(System.nanoTime() - 6_000_000_000L);
            assertInstanceOf(AdminClient.NoDaemonException.class, answer(Errno.EACCES));
            page.heartbeat(System.nanoTime());
            assertInstanceOf(AdminClient.NoDaemonException.class, answer(Errno.ECONNREFUSED));
            page.stopping();
            assertInstanceOf(AdminClient.NoDaemonException.class, answer(Errno.EACCES));
        }
    }

    @Test
    void shouldSayWhomADaemonServesAndTheCommandThatHelps() {
        assumeTrue(ProcessStatus.effectiveUid() == 0, "to give files to others needs root");
        try (StatusPage page = StatusPage.create(directory.status(), 1, "fp", "sim", 3)) {
            page.heartbeat(System.nanoTime());
            final String runs = "a daemon runs in " + directory.root() + " (pid " + ProcessStatus.pid()
                + "), and serves root";
            assertEquals(runs + " only: " + JOIN, notServed(0, 0));
            assertEquals(runs + ", user " + STRANGER + " only: " + JOIN, notServed(STRANGER, 0));
            assertEquals(runs + ", user " + STRANGER + ", group " + STRANGER + " only: `sudo usermod -aG " + STRANGER
                + " " + USER + "`, then log in again", notServed(STRANGER, STRANGER));
        }
    }
}
