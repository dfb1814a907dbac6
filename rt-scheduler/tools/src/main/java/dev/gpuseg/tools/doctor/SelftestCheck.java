/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.doctor;

import dev.gpuseg.mechanisms.SelftestResult;
import dev.gpuseg.mechanisms.amd.AmdSurvey;
import dev.gpuseg.mechanisms.nvidia.NvidiaMachine;
import dev.gpuseg.mechanisms.tegra.TegraSurvey;
import dev.gpuseg.tools.doctor.DoctorCheck.Verdict;
import java.util.List;
import java.util.Optional;

/** What the last {@code gpuseg selftest} says about this machine. */
final class SelftestCheck {
    private static final String NAME = "self-test";
    private static final String RUN_IT =
        "run `gpuseg selftest`, with sudo if the daemon is to know it; it takes a minute";

    private SelftestCheck() {
    }

    /** Of the GPUs that are not NVIDIA's other driver's: a Jetson's or AMD's; none where there is no such GPU. */
    static List<DoctorCheck> ofBoard() {
        if (TegraSurvey.isPresent() && NvidiaMachine.models().isEmpty()) {
            return List.of(run("tegra", TegraSurvey.driverVersion(), List.of(NvidiaMachine.board())));
        }
        return NvidiaMachine.driverVersion().isEmpty() && AmdSurvey.gpus() > 0
            ? List.of(run("amd", AmdSurvey.driverVersion(), AmdSurvey.generations())) : List.of();
    }

    static DoctorCheck run(final String mechanism, final String driver, final List<String> gpus) {
        final Optional<SelftestResult> last = SelftestResult.last();
        if (last.isEmpty()) {
            return new DoctorCheck(NAME, Verdict.ADVICE, "none was made here", RUN_IT);
        }
        final SelftestResult r = last.get();
        final String when = r.day() + ", as " + (r.asRoot() ? "root" : "this user");
        if (r.simulated()) {
            return new DoctorCheck(NAME, Verdict.ADVICE, "simulated, on " + when + ": proves nothing", RUN_IT);
        }
        if (!r.mechanism().equals(mechanism) || !r.isOfThisMachine()) {
            return new DoctorCheck(NAME, Verdict.ADVICE, "of driver " + r.driver() + " on " + r.gpu() + " (" + when
                + "); now driver " + driver + " on " + String.join(", ", gpus), RUN_IT);
        }
        return DoctorCheck.of(NAME, r.holds(), when + ": " + r.sentence(),
            "`gpuseg selftest` says what is missing, and why");
    }
}
