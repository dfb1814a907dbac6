/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NvidiaMachineTest {
    @TempDir
    private Path gpus;

    /** As the driver lists a GPU. */
    static void gpu(final Path gpus, final String address, final String information) throws IOException {
        Files.writeString(Files.createDirectory(gpus.resolve(address)).resolve("information"), information);
    }

    @Test
    void shouldNameEachModelOnce() throws IOException {
        gpu(gpus, "0000:06:00.0", "Model: \t\t NVIDIA H200\nIRQ: 7\n");
        gpu(gpus, "0000:07:00.0", "Model: \t\t NVIDIA H200\n");
        assertEquals("NVIDIA H200", NvidiaMachine.modelNames(gpus));
        gpu(gpus, "0000:08:00.0", "Model: \t\t NVIDIA A2\n");
        assertEquals("NVIDIA A2, NVIDIA H200", NvidiaMachine.modelNames(gpus));
        assertEquals("", NvidiaMachine.modelNames(gpus.resolve("none")));
    }

    @Test
    void shouldReadTheVersionOfOpenAndClosedModules() {
        assertEquals("580.159.04", NvidiaMachine.version("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "
            + "580.159.04  Release Build  (user@host)  Thu"));
        assertEquals("470.256.02", NvidiaMachine.version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02"));
        assertEquals("", NvidiaMachine.version(""));
    }
}
