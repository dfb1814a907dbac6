/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NvidiaSurveyTest {
    @TempDir
    private Path gpus;

    @Test
    void shouldRefuseGpusWithoutTheFirmwareThatDisablesChannels() throws IOException {
        NvidiaMachineTest.gpu(gpus, "0000:06:00.0", "Model: \t\t NVIDIA T4\nGPU Firmware: \t N/A\n");
        final NvidiaSurvey.Finding alone = NvidiaSurvey.firmware(gpus);
        assertFalse(alone.good(), alone.text());
        assertTrue(alone.text().contains("no GSP firmware on 0000:06:00.0"), alone.text());
        assertTrue(alone.text().contains("mechanism launch"), alone.text());

        NvidiaMachineTest.gpu(gpus, "0000:07:00.0", "Model: \t\t NVIDIA H200\nGPU Firmware: \t 580.159.04\n");
        assertTrue(NvidiaSurvey.firmware(gpus).good(), "the other one can be scheduled");
        assertEquals("GSP firmware on 1 of 2 GPUs", NvidiaSurvey.firmware(gpus).text());
    }

    @Test
    void shouldNotRefuseWhereTheDriverDoesNotSay() throws IOException {
        assertTrue(NvidiaSurvey.firmware(gpus).good());
        assertTrue(NvidiaSurvey.firmware(gpus.resolve("none")).good());
        NvidiaMachineTest.gpu(gpus, "0000:06:00.0", "Model: \t\t NVIDIA H200\n");
        assertTrue(NvidiaSurvey.firmware(gpus).good());
    }
}
