/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.NativeTool;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The page by which the bench and its programs know each other, as Java and Python have it, against C. */
class BenchPageTest {
    private static final Path PROGRAMS = Path.of("rt-scheduler/native/gpu-bench");
    private static final String[] MEMBERS = {"pid", "ready", "stop", "reserved", "kernels", "wrong", "last_ns",
        "longest_ns", "first_ns", "mark_ns", "after_ns", "child"};
    /** Names in Python, and the members that they are of. */
    private static final Map<String, String> NAMES = Map.ofEntries(Map.entry("READY", "ready"),
        Map.entry("STOP", "stop"), Map.entry("KERNELS", "kernels"), Map.entry("WRONG", "wrong"),
        Map.entry("MARK", "mark_ns"), Map.entry("AFTER", "after_ns"), Map.entry("SECOND", "reserved"),
        Map.entry("CHILD", "child"), Map.entry("PAGE_BYTES", "bytes"), Map.entry("PID_AT", "pid"),
        Map.entry("READY_AT", "ready"), Map.entry("STOP_AT", "stop"), Map.entry("JOBS_AT", "kernels"),
        Map.entry("WRONG_AT", "wrong"));

    @TempDir
    private Path directory;
    private final Map<String, Integer> offsets = new HashMap<>();

    @BeforeEach
    void ask() throws IOException {
        final StringBuilder program = new StringBuilder("#include \"gpu-bench/bench_page.h\"\n#include <stddef.h>\n"
            + "#include <stdio.h>\nint main(void)\n{\n\tprintf(\"bytes %d\\n\", BE_PAGE_BYTES);\n");
        for (final String member : MEMBERS) {
            program.append("\tprintf(\"" + member + " %zu\\n\", offsetof(struct be_page, " + member + "));\n");
        }
        final Path source = Files.writeString(directory.resolve("page.c"), program.append("\treturn 0;\n}\n"));
        final Path built = NativeTool.compile(directory, source, "rt-scheduler/native");
        NativeTool.run(10, built.toString()).lines().map(line -> line.split(" "))
            .forEach(word -> offsets.put(word[0], Integer.parseInt(word[1])));
        assertEquals(MEMBERS.length + 1, offsets.size());
    }

    @Test
    void shouldBeTheSameInJava() {
        assertEquals(offsets.get("bytes"), CudaBench.PAGE_BYTES);
        assertEquals(offsets.get("pid"), 0);
        assertEquals(offsets.get("ready"), CudaBench.READY_AT);
        assertEquals(offsets.get("stop"), CudaBench.STOP_AT);
        assertEquals(offsets.get("reserved"), CudaBench.GATE_AT);
        assertEquals(offsets.get("kernels"), CudaBench.KERNELS_AT);
        assertEquals(offsets.get("wrong"), CudaBench.WRONG_AT);
        assertEquals(offsets.get("first_ns"), CudaBench.SET_UP_AT);
    }

    @Test
    void shouldBeTheSameInPython() throws IOException {
        final Pattern line = Pattern.compile("(?m)^([A-Z_]+(?:, [A-Z_]+)*) = (\\d+(?:, \\d+)*) +#.*struct be_page$");
        for (final String file : new String[] {"fault_rounds.py", "process_checks.py", "workload.py"}) {
            final Matcher found = line.matcher(Files.readString(NativeTool.root().resolve(PROGRAMS).resolve(file)));
            assertTrue(found.find(), file);
            final String[] names = found.group(1).split(", ");
            final String[] values = found.group(2).split(", ");
            for (int i = 0; i < names.length; i++) {
                assertEquals(offsets.get(NAMES.get(names[i])), Integer.parseInt(values[i]), file + ": " + names[i]);
            }
        }
    }
}
