/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.NativeTool;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Java's view of the mechanisms' shared layouts against the C headers. Fails where there is no C compiler. */
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class LayoutsTest {
    private static final List<String> HEADERS = List.of("rt-scheduler/native/observer/observer_abi.h",
        "segment-api/preload/gpuseg_kfd_agent.h", "segment-api/preload/gpuseg_rm_report.h",
        "rt-scheduler/native/rm/gpuseg_rm.h", "rt-scheduler/native/amd/gpuseg_amd.h",
        "kmod-patch/amdkfd/include/gpuseg_kfd.h", "rt-scheduler/native/tegra/gpuseg_tegra.h");

    @TempDir
    private Path directory;
    private Path generator;

    @BeforeEach
    void compile() {
        generator = NativeTool.compile(directory,
            NativeTool.root().resolve("rt-scheduler/native/tools/gen_layouts.c"), "segment-api", "rt-scheduler/native",
            "kmod-patch/amdkfd/include");
    }

    private String generate(final Path... more) {
        final List<String> command = new ArrayList<>(List.of(generator.toString()));
        HEADERS.forEach(header -> command.add(NativeTool.root().resolve(header).toString()));
        Stream.of(more).forEach(header -> command.add(header.toString()));
        return NativeTool.run(10, command.toArray(String[]::new));
    }

    @Test
    void shouldBeWhatTheGeneratorPrintsFromTheHeaders() throws IOException {
        assertEquals(generate(), Files.readString(NativeTool.root()
            .resolve("rt-scheduler/mechanisms/src/main/java/dev/gpuseg/mechanisms/Layouts.java"),
            StandardCharsets.UTF_8), "Layouts.java is out of date; run make -C rt-scheduler/native layouts");
    }

    @Test
    void shouldNoticeAConstantAndAStructureThatTheGeneratorForgot() throws IOException {
        final Path more = directory.resolve("more.h");
        Files.writeString(more, "#define GPUSEG_OBSERVER_NEW 1\nstruct gpuseg_observer_new {\n};\n");
        final AssertionError refused = assertThrows(AssertionError.class, () -> generate(more));
        assertTrue(refused.getMessage().contains("constant GPUSEG_OBSERVER_NEW"), refused::getMessage);
        assertTrue(refused.getMessage().contains("struct gpuseg_observer_new"), refused::getMessage);
    }

    /** The held file keeps them, whatever mechanism wrote them. */
    @Test
    void shouldFindRoomForEachPayloadInTheHeldFile() {
        for (final int size : new int[] {Layouts.RmHeld.SIZE, Layouts.RmTimeslices.SIZE, Layouts.AmdHeld.SIZE,
            Layouts.TegraHeld.SIZE}) {
            assertTrue(size <= Abi.HELD_PAYLOAD, () -> size + " bytes");
        }
        assertEquals((Abi.HELD_PAYLOAD - Layouts.RmHeld.CHANNELS_OFFSET) / Layouts.RmHeldChannel.SIZE,
            Layouts.RM_CHANNELS_MAX);
    }
}
