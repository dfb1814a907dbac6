/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.command.ExitCode;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.platform.Epoll;
import dev.gpuseg.ipc.platform.FileAccess;
import dev.gpuseg.ipc.platform.Packet;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.ipc.platform.SeqPacketSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The program that asks without a Java runtime. A directory that was named may have a daemon of anybody. */
@Timeout(60)
class AskProgramTest {
    private static final int LIMIT_MS = 30_000;
    private static final int STRANGER = 65_531;
    private static final int NOT_MINE = 125;

    @TempDir
    private Path directory;

    private String shown(final String answer) throws Exception {
        try (SeqPacketSocket listener = SeqPacketSocket.listen(directory.resolve(Abi.SOCKET_NAME), 1);
            Epoll epoll = new Epoll(1)) {
            epoll.add(listener.fd(), Epoll.IN, 0);
            final Process asks = new ProcessBuilder(NativePrograms.named("gpuseg-ask").toString(), "status", "--dir",
                directory.toString()).redirectError(ProcessBuilder.Redirect.INHERIT).start();
            assertEquals(1, epoll.await(LIMIT_MS));
            try (SeqPacketSocket connection = listener.accept()) {
                final byte[] text = answer.getBytes(StandardCharsets.UTF_8);
                final Packet reply = new Packet(Abi.MSG_BYTES_MAX);
                Messages.header(reply, Abi.MSG_ADMIN, Abi.MsgAdminReply.SIZE + text.length, 1, 0);
                reply.data().putInt(Abi.MsgAdminReply.TEXT_SIZE_OFFSET, text.length);
                reply.data().putInt(Abi.MsgAdminReply.MORE_OFFSET, 0);
                reply.data().putBytes(Abi.MsgAdminReply.SIZE, text);
                assertTrue(connection.send(reply) > 0);
                final String said = new String(asks.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
                assertEquals(0, asks.waitFor());
                return said;
            }
        }
    }

    @Test
    void shouldShowAnAnswerAsTextWhateverATerminalWouldMakeOfIt() throws Exception {
        assertEquals("?]0;owned? ?[31mred ??2J ???txt.exe\n",
            shown("\u001b]0;owned\u0007 \u001b[31mred \u009b2J \u202etxt.exe\n"));
    }

    /** As an ordinary user, who has XDG_RUNTIME_DIR; GPUSEG_DIR names a directory without a daemon. */
    private int statusWithVariable(final String... options) throws Exception {
        final Path program = directory.resolve("ask");
        if (!Files.exists(program)) {
            Files.copy(NativePrograms.named("gpuseg-ask"), program);
            FileAccess.chmod(program, 0755);
            FileAccess.chmod(directory, 0755);
        }
        final List<String> command = new ArrayList<>();
        if (ProcessStatus.effectiveUid() == 0) {
            command.addAll(List.of("setpriv", "--reuid=" + STRANGER, "--regid=" + STRANGER, "--clear-groups"));
        }
        command.addAll(List.of(program.toString(), "status"));
        command.addAll(List.of(options));
        final ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().put("GPUSEG_DIR", directory.resolve("left").toString());
        builder.environment().put("XDG_RUNTIME_DIR", directory.toString());
        final Process asks = builder.start();
        asks.getInputStream().readAllBytes();
        return asks.waitFor();
    }

    @Test
    void shouldLeaveItToJavaToSayThatAVariableIsLeftOver() throws Exception {
        assumeTrue(!Files.exists(Path.of(Abi.INSTALLED_DIR)), "gpuseg is installed: its directory precedes others");
        assumeTrue(ProcessStatus.effectiveUid() != 0 || Files.isExecutable(Path.of("/usr/bin/setpriv")),
            "setpriv (package util-linux) is missing");
        final Path own = Files.createDirectory(directory.resolve("gpuseg"));
        FileAccess.chmod(own, 0755);
        final String named = directory.resolve("left").toString();
        if (!Files.exists(Path.of("/dev/shm/gpuseg", Abi.SOCKET_NAME))) {
            assertEquals(ExitCode.NO, statusWithVariable(), "no daemon is there either");
        }
        try (SeqPacketSocket listener = SeqPacketSocket.listen(own.resolve(Abi.SOCKET_NAME), 1)) {
            assertTrue(listener.fd() >= 0);
            assertEquals(NOT_MINE, statusWithVariable());
            assertEquals(ExitCode.NO, statusWithVariable("--dir", named), "no variable said so");
        }
    }

    @Test
    void shouldShowLinesTabsAndLettersOfAllLanguages() throws Exception {
        final String text = "policy\tfp\ntask \u00e9t\u00e9 \u4e16\u754c \ud83d\ude80\n";
        assertEquals(text, shown(text));
    }
}
