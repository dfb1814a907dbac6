/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.mechanisms.amd.AmdMechanism;
import dev.gpuseg.mechanisms.amd.AmdSurvey;
import dev.gpuseg.mechanisms.gate.GateMechanism;
import dev.gpuseg.mechanisms.gate.ObserveMechanism;
import dev.gpuseg.mechanisms.launch.LaunchMechanism;
import dev.gpuseg.mechanisms.nvidia.NvidiaMechanism;
import dev.gpuseg.mechanisms.nvidia.NvidiaSurvey;
import dev.gpuseg.mechanisms.sim.SimMechanism;
import dev.gpuseg.mechanisms.tegra.TegraMechanism;
import dev.gpuseg.mechanisms.tegra.TegraSurvey;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * All mechanisms, one row each, best first. The daemon, commands and help texts ask this catalogue, so that a new
 * mechanism is one package and one row here (and, because C must know it too, a constant of
 * {@code enum gpuseg_mechanism} and a row of the watchdog's table). Immutable and thread-safe.
 */
public final class MechanismCatalog {
    /** In place of a name: {@link #best} of this machine. */
    public static final String AUTO = "auto";

    /** What a refusal names as the remedy that always works. */
    static final String NEXT_LOWER_LEVEL =
        "; the next lower level that works on this GPU is --mechanism gate (level 1)";

    private static final List<MechanismDescription> ROWS = List.of(
        MechanismDescription.row("nvidia", Abi.MECHANISM_NVIDIA, Capabilities.INTERRUPT)
            .text("NVIDIA GPUs with the stock driver, as root", "running work of lower rank is interrupted")
            .testedOn("one and two H200, driver 580.159.04")
            .automatic()
            .observed()
            .gpus(NvidiaSurvey::gpus)
            .calibration(CalibrationMethod.CUDA_KERNELS)
            .exclusive(NvidiaSurvey::isRealDriver)
            .survey(directory -> NvidiaSurvey.verdict())
            .opens(setup -> new NvidiaMechanism(setup.gpu(), setup.protection(), setup.observer())),
        MechanismDescription.row("tegra", Abi.MECHANISM_TEGRA, Capabilities.INTERRUPT)
            .text("Tegra boards with the stock nvgpu driver, as root", "running work of lower rank is interrupted")
            .experimental("a stand-in of nvgpu; never run on a board")
            .oneGpu()
            .observed()
            .exclusive(TegraSurvey::isRealDriver)
            .survey(directory -> TegraSurvey.verdict())
            .opens(setup -> new TegraMechanism(setup.protection(), setup.observer())),
        MechanismDescription.row("amd", Abi.MECHANISM_AMD, Capabilities.INTERRUPT)
            .text("AMD GPUs through KFD, as root", "running work of lower rank is interrupted where the GPU can save "
                + "it (level 3), else it ends first (level 2)")
            .experimental("a stand-in of KFD; never run on AMD hardware")
            .gpus(AmdSurvey::gpus)
            .calibration(CalibrationMethod.AMD_QUEUES)
            .observed()
            .exclusive(AmdSurvey::isRealDriver)
            .survey(directory -> AmdSurvey.verdict())
            .opens(setup -> new AmdMechanism(setup.gpu(), setup.protection(), setup.observer())),
        MechanismDescription.row("sim", Abi.MECHANISM_SIM, Capabilities.INTERRUPT)
            .text("the virtual GPU of the runtime directory", "running work of lower rank is interrupted; all results "
                + "are simulated")
            .testedOn("the virtual GPU")
            .simulated()
            .oneGpu()
            .calibration(CalibrationMethod.VIRTUAL_GPU)
            .survey(SimMechanism::survey)
            .opens(setup -> new SimMechanism(setup.directory().simControl())),
        MechanismDescription.row("launch", Abi.MECHANISM_LAUNCH, Capabilities.GATE)
            .text("NVIDIA GPUs with any driver, also MPS clients; for programs under `gpuseg exec`", "launches of "
                + "lower rank wait; running work is NOT interrupted, and best effort has at most 500 us of it queued "
                + "beside tasks that wait")
            .testedOn("a stand-in of the CUDA driver")
            .gpus(NvidiaSurvey::gpus)
            .survey(directory -> new MechanismVerdict(true, Capabilities.GATE,
                "works with any driver, for programs under `gpuseg exec`: launches of lower rank wait"))
            .opens(setup -> new LaunchMechanism(setup.drains())),
        MechanismDescription.row("gate", Abi.MECHANISM_GATE, Capabilities.GATE)
            .text("any GPU", "begins wait for their turn; running work is NOT interrupted")
            .testedOn("any machine")
            .automatic()
            .gpus(MechanismCatalog::gpusOfAnyMaker)
            .survey(directory -> new MechanismVerdict(true, Capabilities.GATE,
                "works with any GPU: begins wait for their turn"))
            .opens(setup -> new GateMechanism()),
        MechanismDescription.row("observe", Abi.MECHANISM_NONE, Capabilities.OBSERVE)
            .text("any machine", "nothing is enforced: every begin is granted at once and recorded")
            .testedOn("any machine")
            .gpus(MechanismCatalog::gpusOfAnyMaker)
            .survey(directory -> new MechanismVerdict(true, Capabilities.OBSERVE,
                "works on any machine: segments are recorded"))
            .opens(setup -> new ObserveMechanism()));

    /**
     * A mechanism, and whether it works here.
     *
     * @param mechanism its row
     * @param verdict   the result of its survey
     */
    public record Surveyed(MechanismDescription mechanism, MechanismVerdict verdict) {
    }

    private MechanismCatalog() {
    }

    private static int gpusOfAnyMaker() {
        return Math.max(NvidiaSurvey.gpus(), AmdSurvey.gpus());
    }

    /**
     * Those of level 3.
     *
     * @return their names, as a sentence lists them
     */
    public static String interrupting() {
        return ROWS.stream().filter(row -> row.level() == Capabilities.INTERRUPT).map(MechanismDescription::name)
            .collect(Collectors.joining(", "));
    }

    /** All rows, best first; an immutable list. */
    public static List<MechanismDescription> all() {
        return ROWS;
    }

    /** The names, as a sentence lists them, such as {@code nvidia, tegra, gate or observe}. */
    public static String names() {
        return names(ROWS);
    }

    /** The names of the mechanisms that {@code gpuseg calibrate} can measure, such as {@code nvidia, amd or sim}. */
    public static String namesOfCalibrated() {
        return names(ROWS.stream().filter(r -> r.calibration() != CalibrationMethod.NONE).toList());
    }

    private static String names(final List<MechanismDescription> of) {
        final int last = of.size() - 1;
        return of.subList(0, last).stream().map(MechanismDescription::name).collect(Collectors.joining(", "))
            + " or " + of.get(last).name();
    }

    /**
     * Looks a row up.
     *
     * @param name of a mechanism
     * @return its row, empty if there is none
     */
    public static Optional<MechanismDescription> find(final String name) {
        return ROWS.stream().filter(r -> r.name().equals(name)).findAny();
    }

    /**
     * The row of a name.
     *
     * @param name of a mechanism
     * @return its row
     * @throws MechanismException if there is no such mechanism, with the names that exist
     */
    public static MechanismDescription get(final String name) {
        return find(name).orElseThrow(() -> new MechanismException("mechanism \"" + name + "\" is unknown; use "
            + names()));
    }

    /**
     * What works on this machine. Touches no process but this one.
     *
     * @param directory the daemon's runtime directory
     * @return every row with its verdict, best first
     */
    public static List<Surveyed> survey(final RuntimeDirectory directory) {
        return ROWS.stream().map(r -> new Surveyed(r, r.survey(directory))).toList();
    }

    /**
     * What a daemon chooses here without being told, and what {@code gpuseg doctor} recommends: the first usable row
     * that was tested on the hardware that it is for, or the virtual GPU if one runs in the directory. An experimental
     * mechanism is offered, never chosen.
     *
     * @param surveyed the result of {@link #survey}
     * @return one of them; something always works
     */
    public static Surveyed best(final List<Surveyed> surveyed) {
        return surveyed.stream().filter(s -> s.verdict().usable()
            && (s.mechanism().automatic() || s.mechanism().simulated())).findFirst().orElseThrow();
    }

    /**
     * What {@code gpuseg calibrate} measures here without being told: as {@link #best}, of the GPUs that can be
     * measured. The virtual one is measured on demand only, because its figures are those it was started with.
     *
     * @param surveyed the result of {@link #survey}
     * @return its row
     * @throws MechanismException if there is none, with what can be named instead
     */
    public static MechanismDescription bestToCalibrate(final List<Surveyed> surveyed) {
        final List<Surveyed> usable = surveyed.stream().filter(s -> s.verdict().usable() && !s.mechanism().simulated()
            && s.mechanism().calibration() != CalibrationMethod.NONE).toList();
        return usable.stream().map(Surveyed::mechanism).filter(MechanismDescription::automatic).findFirst()
            .orElseThrow(() -> new MechanismException("no GPU that can be measured works here (`gpuseg doctor` says "
                + "why)" + usable.stream().map(s -> "; --mechanism " + s.mechanism().name() + " is experimental")
                .collect(Collectors.joining()) + "; --mechanism sim measures the virtual GPU"));
    }
}
