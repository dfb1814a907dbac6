/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.io.ResultFile;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Where a run of {@code gpuseg bench gpu} is recorded: DIR/manifest.json says how it came about, DIR/bench holds
 * results, samples and drawing. Results are written after every cell, so that a run that is cut off leaves what it
 * measured.
 */
public final class GpuBenchRecord {
    private static final String RUN = "bench";
    private static final String UNKNOWN = "unknown";

    private final Path directory;
    private final String command;

    /** Makes the directories. */
    public GpuBenchRecord(final Path directory, final List<String> arguments) throws IOException {
        this.directory = directory;
        command = arguments.stream().map(GpuBenchRecord::quoted).collect(Collectors.joining(" ", "gpuseg ", ""));
        Files.createDirectories(samples());
    }

    public Path samples() {
        return directory.resolve(RUN);
    }

    public void results(final JsonNode result) throws IOException {
        ResultFile.write(samples().resolve("results.json"), result.toPrettyString() + "\n");
    }

    public void drawing(final String svg) throws IOException {
        ResultFile.write(samples().resolve("results.svg"), svg);
    }

    public void manifest(final JsonNode result, final List<String> xidBefore, final List<String> xidAfter)
        throws IOException {
        final ObjectNode manifest = JsonNodeFactory.instance.objectNode();
        final String gpu = result.path("gpu_before").asText();
        final ObjectNode machine = manifest.putObject("machine");
        machine.put("gpu", gpu.startsWith(UNKNOWN) ? UNKNOWN : gpu.split(",")[0]);
        machine.put("cpus", Runtime.getRuntime().availableProcessors());
        machine.put("cpu", ofCpuInfo("model name"));
        machine.put("kernel", read(Path.of("/proc/sys/kernel/osrelease")).strip());
        machine.put("virtual_machine", (" " + ofCpuInfo("flags") + " ").contains(" hypervisor "));
        machine.put("architecture", System.getProperty("os.arch")).put("java", System.getProperty("java.vm.version"));
        manifest.put("driver", result.path("driver").asText());
        manifest.put("simulated", result.path("simulated").asBoolean());
        final ObjectNode clocks = manifest.putObject("clocks");
        clocks.put("settled", "five seconds of load before anything is measured; not set by us");
        clocks.put("before", gpu);
        result.path("scenarios").properties().forEach(s ->
            clocks.put("loaded_" + s.getKey(), s.getValue().path("gpu_loaded").asText(UNKNOWN)));
        clocks.put("after", result.path("gpu_after").asText());
        manifest.put("date", LocalDate.now(ZoneOffset.UTC).toString()).put("begun", result.path("begun").asText());
        manifest.put("seed", result.path("seed").asInt()).put("commit", commit());
        final String uid = uid();
        manifest.put("privilege", "all processes as user " + uid);
        final ArrayNode runs = manifest.putArray("runs");
        runs.addObject().put("path", RUN).put("command", command);
        manifest.set("xid_lines_before", lines(xidBefore));
        manifest.set("xid_lines_after", lines(xidAfter));
        if (xidBefore == null || xidAfter == null) {
            manifest.putNull("xid_lines_in_dmesg");
        } else {
            manifest.put("xid_lines_in_dmesg", newLines(xidBefore, xidAfter));
        }
        manifest.put("wrong_results", GpuGoals.wrong(result));
        ResultFile.write(directory.resolve("manifest.json"), manifest.toPrettyString() + "\n");
    }

    /** Lines about GPU faults in the kernel's log, or null where it may not be read. */
    public static List<String> xidLines() throws InterruptedException {
        final List<String> log = output(List.of("dmesg"));
        return log == null ? null : log.stream().filter(line -> line.contains("Xid")).collect(Collectors.toList());
    }

    /** How many of the lines are new. */
    public static int newLines(final List<String> before, final List<String> after) {
        return (int) after.stream().filter(line -> !before.contains(line)).count();
    }

    private static JsonNode lines(final List<String> lines) {
        if (lines == null) {
            return JsonNodeFactory.instance.nullNode();
        }
        final ArrayNode array = JsonNodeFactory.instance.arrayNode();
        lines.forEach(array::add);
        return array;
    }

    /** The checkout that the program runs from, else what property gpuseg.commit says. */
    private static String commit() {
        final String root = System.getProperty("gpuseg.root", "");
        try {
            final List<String> lines = root.isEmpty() ? null : output(List.of("git", "-C", root, "rev-parse", "HEAD"));
            if (lines != null && !lines.isEmpty() && lines.get(0).matches("[0-9a-f]{40,64}")) {
                final List<String> changed = output(List.of("git", "-C", root, "status", "--porcelain", "-uno"));
                return lines.get(0) + (changed == null || changed.isEmpty() ? "" : " with changes");
            }
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return System.getProperty("gpuseg.commit", UNKNOWN);
    }

    /** What a program printed, or null if it is not there or not content. */
    private static List<String> output(final List<String> program) throws InterruptedException {
        try {
            final Process process = new ProcessBuilder(program).redirectError(ProcessBuilder.Redirect.DISCARD).start();
            final List<String> lines =
                new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).lines().toList();
            return process.waitFor() == 0 ? lines : null;
        } catch (final IOException e) {
            return null;   // what it would have said is recorded as unknown
        }
    }

    private static String ofCpuInfo(final String key) {
        return read(Path.of("/proc/cpuinfo")).lines().filter(line -> line.startsWith(key)).findFirst()
            .map(line -> line.substring(line.indexOf(':') + 1).strip()).orElse(UNKNOWN);
    }

    private static String uid() {
        return read(Path.of("/proc/self/status")).lines().filter(line -> line.startsWith("Uid:")).findFirst()
            .map(line -> line.split("\\s+")[2]).orElse(UNKNOWN);
    }

    private static String read(final Path file) {
        try {
            return Files.readString(file);
        } catch (final IOException e) {
            return UNKNOWN;
        }
    }

    private static String quoted(final String argument) {
        return argument.matches("[A-Za-z0-9_./:=,+-]+") ? argument : "'" + argument.replace("'", "'\\''") + "'";
    }
}
