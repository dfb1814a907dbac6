/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ProfileMachineTest {
    private static final String MEASURED =
        "{\"mechanism\":\"nvidia\",\"gpu\":\"NVIDIA H100\",\"driver_version\":\"570.1\"}";

    @TempDir
    private Path directory;

    @Test
    void shouldSayWhatDiffersBetweenProfileAndMachine() throws Exception {
        final JsonNode measured = new ObjectMapper().readTree(MEASURED);
        assertEquals("", ProfileMachine.difference(measured, "NVIDIA H100", "570.1"));
        assertEquals("the profile was measured on another machine: GPU NVIDIA H100, here NVIDIA H200, driver 570.1, "
            + "here 580.159.04; its constants say nothing of this one, measure it with gpuseg calibrate",
            ProfileMachine.difference(measured, "NVIDIA H200", "580.159.04"));
        assertEquals("", ProfileMachine.difference(measured, "", ""), "nothing is known of this machine");
        assertEquals("", ProfileMachine.difference(null, "NVIDIA H200", "580.159.04"), "typed by hand");
        assertEquals("", ProfileMachine.difference(new ObjectMapper().readTree(MEASURED.replace("nvidia", "sim")),
            "NVIDIA H200", "580.159.04"), "a virtual GPU is on no machine");
    }

    @Test
    void shouldFindTheMeasurementInAProfileAndInTheProfileOfASet() throws Exception {
        final Path profile = Files.writeString(directory.resolve("gpu.yaml"), "cpus: 2\nepsilon: 1ms\nmeasured: "
            + MEASURED + "\n");
        assertEquals("NVIDIA H100", AdmissionSettings.measured(profile, null).path("gpu").asText());
        final Path set = Files.writeString(directory.resolve("set.yaml"), "version: 1\nid: s\nplatform: gpu\ntasks: "
            + "[{name: a, cpu: 1, period: 10ms, priority: 5, segments: [{gpu: {host: 0ms, device: 5ms}}]}]\n");
        assertEquals("570.1", AdmissionSettings.measured(null, set).path("driver_version").asText());
        assertNull(AdmissionSettings.measured(null, null));
    }
}
