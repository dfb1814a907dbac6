/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import dev.gpuseg.mechanisms.amd.AmdMechanism;
import dev.gpuseg.mechanisms.amd.AmdSurvey;
import dev.gpuseg.mechanisms.gate.GateMechanism;
import dev.gpuseg.mechanisms.gate.ObserveMechanism;
import dev.gpuseg.mechanisms.nvidia.NvidiaMechanism;
import dev.gpuseg.mechanisms.nvidia.NvidiaSurvey;
import dev.gpuseg.mechanisms.sim.SimMechanism;
import dev.gpuseg.mechanisms.tegra.TegraMechanism;
import dev.gpuseg.mechanisms.tegra.TegraSurvey;
import java.nio.file.Path;
import java.util.List;

/** The mechanisms by name. */
public final class Mechanisms {
    /**
     * Whether a mechanism can be used here.
     *
     * @param name   on the command line
     * @param level  0..3, what it would reach
     * @param usable true if the daemon would start with it
     * @param reason one line: why, or why not and what to do
     */
    public record Availability(String name, int level, boolean usable, String reason) {
    }

    private Mechanisms() {
    }

    /**
     * Makes the mechanism of a name.
     *
     * @param name       observe, gate, sim, nvidia, tegra or amd
     * @param gpu        index of the GPU, from 0
     * @param simControl control socket of the virtual GPU
     * @param protection processes that are never touched
     * @return one instance, for one GPU
     * @throws MechanismException if it cannot be used here, with the reason and the next lower level
     */
    public static Mechanism named(final String name, final int gpu, final Path simControl,
        final Protection protection) {
        switch (name) {
            case "observe":
                return new ObserveMechanism();
            case "gate":
                return new GateMechanism();
            case "sim":
                return new SimMechanism(simControl);
            case "nvidia":
                final NvidiaSurvey.Finding nvidia = NvidiaSurvey.verdict();
                if (!nvidia.good()) {
                    throw new MechanismException("mechanism \"nvidia\": " + nvidia.text()
                        + "; the next lower level that works on this GPU is --mechanism gate (level 1)");
                }
                return new NvidiaMechanism(gpu, protection);
            case "tegra":
                final TegraSurvey.Finding tegra = TegraSurvey.verdict();
                if (!tegra.good()) {
                    throw new MechanismException("mechanism \"tegra\": " + tegra.text()
                        + "; the next lower level that works on this GPU is --mechanism gate (level 1)");
                }
                return new TegraMechanism(gpu, protection);
            case "amd":
                final AmdSurvey.Finding amd = AmdSurvey.verdict();
                if (!amd.good()) {
                    throw new MechanismException("mechanism \"amd\": " + amd.text()
                        + "; the next lower level that works on this GPU is --mechanism gate (level 1)");
                }
                return new AmdMechanism(gpu, protection);
            default:
                throw new MechanismException("mechanism \"" + name
                    + "\" is unknown; use observe, gate, sim, nvidia, tegra or amd");
        }
    }

    /**
     * What works on this machine, best first.
     *
     * @param simControl control socket of the virtual GPU
     * @return one line each
     */
    public static List<Availability> survey(final Path simControl) {
        return List.of(
            nvidia(),
            tegra(),
            amd(),
            sim(simControl),
            new Availability("gate", Capabilities.GATE, true, "works with any GPU: begins are held back"),
            new Availability("observe", Capabilities.OBSERVE, true, "works on any machine: segments are recorded"));
    }

    private static Availability nvidia() {
        final NvidiaSurvey.Finding verdict = NvidiaSurvey.verdict();
        return new Availability("nvidia", Capabilities.INTERRUPT, verdict.good(), verdict.text());
    }

    private static Availability tegra() {
        final TegraSurvey.Finding verdict = TegraSurvey.verdict();
        return new Availability("tegra", Capabilities.INTERRUPT, verdict.good(), verdict.text());
    }

    private static Availability amd() {
        final AmdSurvey.Finding verdict = AmdSurvey.verdict();
        return new Availability("amd", verdict.level(), verdict.good(), verdict.text());
    }

    private static Availability sim(final Path control) {
        try (SimMechanism probe = new SimMechanism(control)) {
            return new Availability("sim", probe.capabilities().level(), true,
                "a virtual GPU answers at " + control + "; its results are simulated");
        } catch (final MechanismException e) {
            return new Availability("sim", Capabilities.INTERRUPT, false, e.getMessage());
        }
    }
}
