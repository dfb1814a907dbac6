/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.platform.ProcFile;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MpsPipeTest {
    @TempDir
    private Path proc;
    private Path host;
    private ProcFile files;

    @BeforeEach
    void makeRoot() throws IOException {
        files = new ProcFile(proc.toString(), MpsPipe.ENVIRONMENT_MAX);
        host = Files.createDirectory(proc.resolve("host"));
    }

    private MpsPipe process(final int pid, final Path root, final String environment) throws IOException {
        final Path process = Files.createDirectory(proc.resolve(Integer.toString(pid)));
        Files.writeString(process.resolve("environ"), environment);
        Files.createSymbolicLink(process.resolve("root"), root);
        return MpsPipe.of(files, pid);
    }

    @Test
    void shouldTellDirectoriesApart() throws IOException {
        Files.createDirectories(host.resolve("run/a"));
        Files.createDirectories(host.resolve("run/b"));
        Files.createSymbolicLink(host.resolve("run/link"), Path.of("a"));
        final MpsPipe a = process(1, host, "HOME=/\0CUDA_MPS_PIPE_DIRECTORY=/run/a\0X=1\0");
        assertFalse(a.mayBe(process(2, host, "CUDA_MPS_PIPE_DIRECTORY=/run/b\0")));
        assertFalse(a.mayBe(process(3, host, "NOT_CUDA_MPS_PIPE_DIRECTORY=/run/a\0")));
        assertFalse(a.mayBe(process(4, host, "CUDA_MPS_PIPE_DIRECTORY=/run/none\0")));
        assertTrue(a.mayBe(process(5, host, "CUDA_MPS_PIPE_DIRECTORY=/run/link/../a/\0")));
        assertTrue(a.mayBe(process(6, host, "CUDA_MPS_PIPE_DIRECTORY=/run/link\0")));
    }

    @Test
    void shouldUseTheDefaultWhereNothingIsSet() throws IOException {
        final MpsPipe unset = process(1, host, "HOME=/\0");
        assertEquals("/tmp/nvidia-mps", unset.name());
        final MpsPipe named = process(2, host, "CUDA_MPS_PIPE_DIRECTORY=/tmp/../tmp/nvidia-mps\0");
        assertTrue(unset.mayBe(named), "the same name of what is not there yet");
        Files.createDirectories(host.resolve("tmp/nvidia-mps"));
        assertTrue(unset.mayBe(named));
    }

    @Test
    void shouldLookThroughTheRootOfTheProcess() throws IOException {
        final Path container = Files.createDirectories(host.resolve("containers/1"));
        Files.createDirectories(container.resolve("tmp/nvidia-mps"));
        Files.createDirectories(host.resolve("tmp/nvidia-mps"));
        final MpsPipe inside = process(1, container, "HOME=/\0");
        assertFalse(inside.mayBe(process(2, host, "HOME=/\0")), "two directories of one name");
        assertTrue(inside.mayBe(process(3, host, "CUDA_MPS_PIPE_DIRECTORY=/containers/1/tmp/nvidia-mps\0")));
    }

    @Test
    void shouldBeAnybodysWhereItCannotBeKnown() throws IOException {
        final MpsPipe known = process(1, host, "CUDA_MPS_PIPE_DIRECTORY=/run/a\0");
        Files.createDirectories(proc.resolve("2/environ"));   // reading a directory fails
        assertTrue(known.mayBe(MpsPipe.of(files, 2)));
        assertTrue(MpsPipe.of(files, 3).mayBe(known), "no such process");
        assertTrue(known.mayBe(process(4, host, "CUDA_MPS_PIPE_DIRECTORY=mps\0")), "relative");
        assertTrue(known.mayBe(process(5, host, "CUDA_MPS_PIPE_DIRECTORY=\0")), "empty");
    }

    @Test
    void shouldTakeWhateverAProcessNames() throws IOException {
        final MpsPipe known = process(1, host, "CUDA_MPS_PIPE_DIRECTORY=/run/a\0");
        final MpsPipe strange = process(2, host, "");
        Files.write(proc.resolve("2/environ"), "CUDA_MPS_PIPE_DIRECTORY=/\u00e9\u00ff\0"
            .getBytes(StandardCharsets.ISO_8859_1));
        known.mayBe(MpsPipe.of(files, 2));   // no path in some encodings, and no exception in any
        assertFalse(known.mayBe(strange));
        assertFalse(known.mayBe(process(3, host, "LONG=" + "x".repeat(100_000)
            + "\0CUDA_MPS_PIPE_DIRECTORY=/run/b\0")));
    }
}
