/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.platform.BoundedFile;
import dev.gpuseg.mechanisms.MachineFiles;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/** Reads what the KFD driver shows in /sys: GPUs, how queues reach the hardware, processes and their queues. */
final class AmdSysfs {
    /** Property: where {@code sys} lies, for tests; default {@code /}. */
    static final String ROOT_PROPERTY = "gpuseg.amd.root";

    /** How queues reach the hardware. */
    enum Mode {
        /** The driver loads and unloads HQDs itself. */
        NO_HWS,
        /** Firmware maps a runlist: every change unmaps and maps all queues of that GPU. */
        HWS,
        /** Firmware adds and removes single queues. */
        MES;

        String word() {
            return name().toLowerCase(Locale.ROOT).replace('_', '-');
        }
    }

    /** One GPU; {@code gfx} as gfx_target_version shows it: 90402 is gfx9.4.2. */
    record Gpu(int node, int gpuId, int gfx, Mode mode) {
        private static final int MAJOR = 10_000;
        private static final int MINOR = 100;

        int major() {
            return gfx / MAJOR;
        }

        String generation() {
            return "gfx" + major() + '.' + gfx / MINOR % MINOR + '.' + gfx % MINOR;
        }
    }

    /** One queue of a process; {@code compute} is false for copies (SDMA). */
    record Queue(int id, int gpuId, boolean compute) {
    }

    private static final String CONTEXT_PREFIX = "context_";
    private static final int POLICY_NO_HWS = 2;
    private static final int MES_SINCE = 11;
    private static final int GFX_HAWAII = 70_001;
    private static final int GFX_TONGA = 80_002;

    private final Path kfd;
    private final Path module;
    private final Path parameters;

    AmdSysfs(final Path root) {
        kfd = root.resolve("sys/class/kfd/kfd");
        module = root.resolve("sys/module/amdgpu");
        parameters = module.resolve("parameters");
    }

    static AmdSysfs ofThisMachine() {
        return new AmdSysfs(Path.of(System.getProperty(ROOT_PROPERTY, MachineFiles.root().toString())));
    }

    /** The GPUs in the order of their topology nodes. The index in this list is the daemon's GPU 0, 1, ... */
    List<Gpu> gpus() {
        final List<Gpu> found = new ArrayList<>();
        for (final Path node : numbered(kfd.resolve("topology/nodes"))) {
            final long gpuId = number(read(node.resolve("gpu_id")), 0);
            if (gpuId != 0) {   // a node without GPU is a CPU
                int gfx = 0;
                for (final String line : read(node.resolve("properties")).split("\n")) {
                    if (line.startsWith("gfx_target_version ")) {
                        gfx = (int) number(line.substring(line.indexOf(' ') + 1), 0);
                    }
                }
                found.add(new Gpu(Integer.parseInt(node.getFileName().toString()), (int) gpuId, gfx, mode(gfx)));
            }
        }
        return found;
    }

    private Mode mode(final int gfx) {
        // the driver forces NO_HWS on two old chips, whatever the parameter says
        if (policy() == POLICY_NO_HWS || gfx == GFX_HAWAII || gfx == GFX_TONGA) {
            return Mode.NO_HWS;
        }
        return gfx / Gpu.MAJOR >= MES_SINCE ? Mode.MES : Mode.HWS;
    }

    /** amdgpu.sched_policy; -1 where it cannot be read. */
    int policy() {
        return (int) number(read(parameters.resolve("sched_policy")), -1);
    }

    /** Of a driver that is not the kernel's own; else empty. */
    String driverVersion() {
        return read(module.resolve("version")).strip();
    }

    /** Whether running waves can be saved; if not, a queue that is disabled drains first. */
    boolean savesWaves() {
        return number(read(parameters.resolve("cwsr_enable")), 1) != 0;
    }

    /** Processes that KFD lists; some may have ended. */
    List<Integer> pids() {
        final List<Integer> found = new ArrayList<>();
        for (final Path p : numbered(kfd.resolve("proc"))) {
            found.add(Integer.parseInt(p.getFileName().toString()));
        }
        return found;
    }

    /**
     * Queues of a process on all GPUs; empty if it has none or has ended. From Linux 7.1 on, a process may have several
     * KFD contexts: those of the first come first, and two queues of different contexts may have the same id.
     */
    List<Queue> queues(final int pid) {
        final Path process = kfd.resolve("proc/" + pid);
        final List<Queue> found = new ArrayList<>(queuesIn(process));
        for (final Path context : numbered(process, CONTEXT_PREFIX)) {
            found.addAll(queuesIn(context));
        }
        return found;
    }

    private static List<Queue> queuesIn(final Path context) {
        final List<Queue> found = new ArrayList<>();
        for (final Path q : numbered(context.resolve("queues"))) {
            final long gpuId = number(read(q.resolve("gpuid")), 0);
            if (gpuId != 0) {   // 0: the queue was destroyed meanwhile
                found.add(new Queue(Integer.parseInt(q.getFileName().toString()), (int) gpuId,
                    number(read(q.resolve("type")), 0) == 0));
            }
        }
        return found;
    }

    private static List<Path> numbered(final Path directory) {
        return numbered(directory, "");
    }

    /** What is named by {@code prefix} and a number, in the order of the numbers. */
    private static List<Path> numbered(final Path directory, final String prefix) {
        final List<Path> found = new ArrayList<>();
        try (DirectoryStream<Path> list = Files.newDirectoryStream(directory)) {
            for (final Path p : list) {
                if (p.getFileName().toString().matches(prefix + "[0-9]{1,9}")) {
                    found.add(p);
                }
            }
        } catch (final IOException | DirectoryIteratorException e) {
            return List.of();   // no driver, or the process has ended
        }
        found.sort(Comparator.comparingInt(
            p -> Integer.parseInt(p.getFileName().toString().substring(prefix.length()))));
        return found;
    }

    private static long number(final String text, final long otherwise) {
        final String stripped = text.strip();
        return stripped.matches("-?[0-9]{1,18}") ? Long.parseLong(stripped) : otherwise;
    }

    private static String read(final Path path) {
        try {
            return BoundedFile.text(path, StandardCharsets.ISO_8859_1);
        } catch (final IOException e) {
            return "";   // its absence is a finding, not an error
        }
    }
}
