/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.space;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Who has a GPU open and is no client of the space, in a /proc that the test makes. */
class OutsidersTest {
    private static final Path PIPE = Path.of("/run/gpuseg/mps");

    @TempDir
    private Path proc;
    private Outsiders outsiders;

    @BeforeEach
    void start() {
        outsiders = new Outsiders(proc, PIPE);
    }

    private void process(final String pid, final String name, final String device, final String environment)
        throws IOException {
        final Path process = Files.createDirectories(proc.resolve(pid));
        Files.createDirectory(process.resolve("fd"));
        Files.createSymbolicLink(process.resolve("fd/0"), Path.of("/dev/null"));
        Files.createSymbolicLink(process.resolve("fd/7"), Path.of(device));
        Files.writeString(process.resolve("comm"), name + "\n");
        Files.writeString(process.resolve("environ"), environment.replace(' ', '\0'));
    }

    @Test
    void shouldNameThoseThatAreNoClients() throws IOException {
        process("11", "python3", "/dev/nvidia0", "PATH=/bin ");
        process("12", "inside", "/dev/nvidia1", "PATH=/bin CUDA_MPS_PIPE_DIRECTORY=" + PIPE + " ");
        process("13", "elsewhere", "/dev/nvidia0", "CUDA_MPS_PIPE_DIRECTORY=" + PIPE + "2 ");
        process("14", "pretends", "/dev/nvidia0", "X_CUDA_MPS_PIPE_DIRECTORY=" + PIPE + " ");
        assertEquals(List.of("elsewhere[13]", "pretends[14]", "python3[11]"), outsiders.look().outside().stream()
            .sorted().toList());
    }

    /** A program's children inherit its environment, and with it a limit of their own. */
    @Test
    void shouldCountProcessesOfBestEffortInside() throws IOException {
        final String inside = "CUDA_MPS_PIPE_DIRECTORY=" + PIPE + " ";
        process("41", "train", "/dev/nvidia0", inside + "CUDA_MPS_CLIENT_PRIORITY=1 ");
        process("42", "worker", "/dev/nvidia0", inside + "CUDA_MPS_CLIENT_PRIORITY=1 ");
        process("43", "asleep", "/dev/null", inside + "CUDA_MPS_CLIENT_PRIORITY=1 ");
        process("44", "detector", "/dev/nvidia0", inside);
        assertEquals(new Outsiders.Seen(List.of(), 2), outsiders.look());
    }

    /** A monitor has the control device, an MPS server the GPU; neither has work of its own on it. */
    @Test
    void shouldLeaveOutWhoHasNoGpuAndWhatBelongsToMps() throws IOException {
        process("21", "nvidia-smi", "/dev/nvidiactl", "");
        process("22", "nvidia-cuda-mps-server", "/dev/nvidia0", "");
        process("23", "editor", "/tmp/dev/nvidia0", "");
        process("self", "shell", "/dev/nvidia0", "");
        assertEquals(new Outsiders.Seen(List.of(), 0), outsiders.look());
    }

    /** A control daemon that was there before may be in MPS's own place, and its server named by nothing. */
    @Test
    void shouldCountServersAndClientsThatAreToldNothingAsInside() throws IOException {
        final Outsiders adopted = new Outsiders(proc, Path.of("/tmp/nvidia-mps"));
        process("51", "nvidia-cuda-mps-server", "/dev/nvidia0", "");
        process("52", "told-nothing", "/dev/nvidia0", "PATH=/bin ");
        process("53", "elsewhere", "/dev/nvidia0", "CUDA_MPS_PIPE_DIRECTORY=/tmp/none ");
        assertTrue(adopted.isInside(51) && adopted.isInside(52));
        assertFalse(adopted.isInside(53));
        assertTrue(outsiders.isInside(51), "disabled, it would stop all clients");
        assertFalse(outsiders.isInside(52));
    }

    @Test
    void shouldLeaveOutWhatCannotBeRead() throws IOException {
        Files.createDirectory(proc.resolve("31"));
        process("32", "half", "/dev/nvidia0", "");
        Files.delete(proc.resolve("32/environ"));
        assertEquals(List.of("half[32]"), outsiders.look().outside(), "it has a GPU, and nothing says where it is");
        assertThrows(IOException.class, () -> new Outsiders(proc.resolve("none"), PIPE).look());
    }
}
