/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.doctor;

import dev.gpuseg.mechanisms.MachineFiles;
import dev.gpuseg.mechanisms.Protection;
import dev.gpuseg.mechanisms.nvidia.NvidiaMachine;
import dev.gpuseg.tools.doctor.DoctorCheck.Verdict;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Collectors;

/**
 * What a machine with NVIDIA's driver has that mechanism nvidia must know: which GPU and board, what a self-test
 * proved, MIG, and who has the screen. Reads files, asks no driver. None of it keeps the daemon from running.
 */
final class NvidiaChecks {
    /** The models on which the mechanism has been run; traces/machines and traces/runs have the records. */
    private static final List<String> TESTED = List.of("H100", "H200");
    private static final String THOR = "Thor";
    private static final String CARD = "/dev/dri/card";
    private static final String MODESET = "/dev/nvidia-modeset";

    private final List<DoctorCheck> checks = new ArrayList<>();

    /** All checks, in a fixed order; none where the driver lists no GPU. */
    List<DoctorCheck> checks() {
        checks.clear();
        final List<String> models = NvidiaMachine.models();
        if (!models.isEmpty() && !NvidiaMachine.driverVersion().isEmpty()) {
            gpu(models);
            checks.add(SelftestCheck.run("nvidia", NvidiaMachine.driverVersion(), models));
            mig();
            displays();
        }
        return List.copyOf(checks);
    }

    private void gpu(final List<String> models) {
        final String board = NvidiaMachine.board();
        final boolean tested = models.stream().allMatch(m -> TESTED.stream().anyMatch(m::contains));
        final boolean thor = board.contains(THOR);
        checks.add(DoctorCheck.of("NVIDIA GPU", tested, String.join(", ", models) + ", driver "
            + NvidiaMachine.driverVersion() + (board.isEmpty() ? "" : ", on " + board),
            "mechanism nvidia was run on " + String.join(" and ", TESTED) + " only" + (thor
                ? ". Thor has the same driver, but what waits there for camera or display is unknown" : "")
                + ": `gpuseg selftest` proves what holds here"));
    }

    private void mig() {
        final int instances = NvidiaMachine.migInstances();
        if (instances > 0) {
            checks.add(new DoctorCheck("MIG", Verdict.ADVICE, "on; instances: " + instances, "the daemon takes all "
                + "instances of a GPU for one: a segment also disables programs in other instances. Never tested; "
                + "turn MIG off (nvidia-smi -mig 0), or use mechanism launch"));
        }
    }

    /** Programs that have a card node or nvidia-modeset open; who is not protected may be disabled, and its screen. */
    private void displays() {
        final TreeSet<String> covered = new TreeSet<>();
        final TreeSet<String> others = new TreeSet<>();
        int unseen = 0;
        try (DirectoryStream<Path> processes = Files.newDirectoryStream(MachineFiles.at("/proc"), "[0-9]*")) {
            for (final Path process : processes) {
                try {
                    if (OpenFiles.any(process, path -> path.startsWith(CARD) || path.equals(MODESET))) {
                        final String name = process.resolve("exe").toRealPath().getFileName().toString();
                        (Protection.DEFAULTS.covers(process) ? covered : others).add(name);
                    }
                } catch (final IOException e) {
                    unseen++;   // another user's, or it has ended
                }
            }
        } catch (final IOException e) {
            return;   // no /proc: the hygiene checks say so
        }
        final String hidden = unseen == 0 ? "" : "; processes of other users are not seen without root";
        if (!others.isEmpty()) {
            checks.add(new DoctorCheck("displays", Verdict.ADVICE, "not protected: " + String.join(", ", others)
                + (covered.isEmpty() ? "" : "; protected: " + String.join(", ", covered)) + hidden,
                "what draws the screen must not be disabled: protect: " + others.stream()
                    .collect(Collectors.joining(", ", "[", "]")) + " in the daemon's settings"));
        } else if (!covered.isEmpty()) {
            checks.add(new DoctorCheck("displays", Verdict.OK, "protected: " + String.join(", ", covered) + hidden,
                ""));
        }
    }
}
