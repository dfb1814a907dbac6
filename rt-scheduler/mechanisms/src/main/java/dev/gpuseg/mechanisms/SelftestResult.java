/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import dev.gpuseg.ipc.platform.BoundedFile;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.amd.AmdSurvey;
import dev.gpuseg.mechanisms.nvidia.NvidiaMachine;
import dev.gpuseg.mechanisms.tegra.TegraSurvey;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.LocalDate;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * What {@code gpuseg selftest} found when it ran last; {@code native/selftest/last.c} writes it. Root's and the user's
 * own are believed, from a file that no other user may write.
 *
 * @param mechanism whose calls were tested: nvidia, tegra or amd
 * @param driver    version of the driver that was tested
 * @param gpu       what was tested: model of NVIDIA, board of a Jetson, generation of AMD
 * @param level     {@link #PREEMPTS}, {@link #DRAINS}, slices, launch, gate or nothing
 * @param holds     whether all that the mechanism relies on was proven
 * @param sentence  the result in words
 * @param simulated whether a stand-in of the driver answered
 * @param asRoot    whether root ran it
 * @param day       when it ended
 */
public record SelftestResult(String mechanism, String driver, String gpu, String level, boolean holds, String sentence,
    boolean simulated, boolean asRoot, LocalDate day) {
    /** The level at which running work is interrupted. */
    public static final String PREEMPTS = "preempts";
    /** The level at which no new work starts, but a running kernel ends first. */
    public static final String DRAINS = "drains";
    private static final String NVIDIA = "nvidia";
    private static final String VENDOR = "NVIDIA ";
    private static final String NOTHING = "nothing";
    private static final String OF_ROOT = "/var/lib/gpuseg-selftest/result";
    private static final int WRITABLE_BY_OTHERS = 0022;
    private static final int LONGEST = 4096;

    /** The one about this driver and GPU, of root before the user's own; else the newest about others. */
    public static Optional<SelftestResult> last() {
        final List<SelftestResult> found = new ArrayList<>();
        read(MachineFiles.at(OF_ROOT)).ifPresent(found::add);
        final String own = ownPath();
        if (own.startsWith("/")) {
            read(MachineFiles.at(own)).ifPresent(found::add);
        }
        return found.stream().filter(SelftestResult::isOfThisMachine).findFirst()
            .or(() -> found.stream().reduce((a, b) -> b.day().isAfter(a.day()) ? b : a));
    }

    private static String ownPath() {
        final String state = System.getenv("XDG_STATE_HOME");
        return (state != null && state.startsWith("/") ? state : System.getProperty("user.home", "") + "/.local/state")
            + "/gpuseg/result";
    }

    /** Whether it says something about the driver that is loaded and a GPU that it lists; false for a simulated one. */
    public boolean isOfThisMachine() {
        return !simulated && switch (mechanism) {
            case NVIDIA -> driver.equals(NvidiaMachine.driverVersion())
                && NvidiaMachine.models().stream().anyMatch(model -> withoutVendor(model).equals(withoutVendor(gpu)));
            case "tegra" -> driver.equals(TegraSurvey.driverVersion()) && gpu.equals(NvidiaMachine.board());
            case "amd" -> driver.equals(AmdSurvey.driverVersion()) && AmdSurvey.generations().contains(gpu);
            default -> false;
        };
    }

    /** CUDA and the driver's files do not always agree in this word. */
    private static String withoutVendor(final String model) {
        return model.startsWith(VENDOR) ? model.substring(VENDOR.length()) : model;
    }

    /** Whether it proves that this driver does not interrupt running work on this GPU. */
    public boolean refutes() {
        return isOfThisMachine() && !level.equals(PREEMPTS) && !level.equals(NOTHING);
    }

    /** Whether it proves that this driver interrupts running work on this GPU. */
    public boolean proves() {
        return isOfThisMachine() && level.equals(PREEMPTS);
    }

    /**
     * A verdict, corrected by what was proven here.
     *
     * @param mechanism its name
     * @param verdict   what a survey without the self-test says
     * @return the same where nothing was proven about this machine, or where it is not usable anyway
     */
    public static MechanismVerdict correct(final String mechanism, final MechanismVerdict verdict) {
        final Optional<SelftestResult> last = last().filter(r -> r.mechanism().equals(mechanism)
            && r.isOfThisMachine());
        if (!verdict.usable() || last.isEmpty()) {
            return verdict;
        }
        final SelftestResult r = last.get();
        if (r.level().equals(DRAINS)) {
            return new MechanismVerdict(true, Math.min(verdict.level(), Capabilities.DEACTIVATE), verdict.reason()
                + "; `gpuseg selftest` found on " + r.day() + ": " + r.sentence());
        }
        if (r.refutes()) {
            return new MechanismVerdict(false, verdict.level(), "`gpuseg selftest` found on " + r.day() + ": "
                + r.sentence());
        }
        return new MechanismVerdict(true, verdict.level(), verdict.reason() + (r.proves()
            ? "; proven here by `gpuseg selftest` on " + r.day() : ""));
    }

    static Optional<SelftestResult> read(final Path file) {
        try {
            final Map<String, Object> is = Files.readAttributes(file, "unix:uid,mode,isRegularFile,lastModifiedTime",
                LinkOption.NOFOLLOW_LINKS);
            final int uid = (Integer) is.get("uid");
            if (!(Boolean) is.get("isRegularFile") || (uid != 0 && uid != ProcessStatus.effectiveUid())
                || ((Integer) is.get("mode") & WRITABLE_BY_OTHERS) != 0 || Files.size(file) > LONGEST) {
                return Optional.empty();
            }
            final Map<String, String> values = new HashMap<>();
            for (final String line : BoundedFile.lines(file, StandardCharsets.ISO_8859_1)) {
                final int colon = line.indexOf(": ");
                if (colon > 0) {
                    values.put(line.substring(0, colon), line.substring(colon + 2).strip());
                }
            }
            if (!"1".equals(values.get("selftest")) || !values.keySet().containsAll(List.of("simulated", "driver",
                "gpu", "level", "exit_status", "sentence"))) {
                return Optional.empty();
            }
            return Optional.of(new SelftestResult(values.getOrDefault("mechanism", NVIDIA), values.get("driver"),
                values.get("gpu"), values.get("level"), values.get("exit_status").equals("0"), values.get("sentence"),
                values.get("simulated").equals("yes"), uid == 0, ((FileTime) is.get("lastModifiedTime")).toInstant()
                    .atZone(ZoneId.systemDefault()).toLocalDate()));
        } catch (final IOException e) {
            return Optional.empty();   // there is none, or this user may not read it
        }
    }
}
