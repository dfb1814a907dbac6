/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/** All scenarios of {@code gpuseg bench gpu}, in the order in which they are measured. */
public final class GpuScenarios {
    /** Only measured where they are named: they take longer than all others. */
    public static final Set<String> ON_DEMAND = Set.of(DisbScenario.NAME, LoopScenario.NAME);
    private static final double SHORT_MS = 1;
    private static final double SHORT_OTHER_MS = 0.5;
    private static final int SHORT_OTHERS = 3;
    private static final double CONTROL_MS = 0.35;
    private static final int CONTROL_KERNELS = 10;
    private static final double CONTROL_PERIOD_MS = 10;
    private static final int CONTROL_FACTOR = 10;
    private static final double CONTROL_OTHER_MS = 20;
    private static final double PERIODIC_MS = 5;
    private static final double PERIODIC_PERIOD_MS = 33.333;
    private static final int PERIODIC_FACTOR = 3;
    private static final int CNN_PERIOD_MS = 20;
    private static final int VIT_PERIOD_MS = 30;
    private static final int LLM_PERIOD_MS = 100;
    private static final Set<GpuStrategy> SHORT_STRATEGIES = EnumSet.of(GpuStrategy.NONE, GpuStrategy.BARE_BLOCKING,
        GpuStrategy.BLOCKING, GpuStrategy.OPTIMISTIC);

    private GpuScenarios() {
    }

    /**
     * The scenarios.
     *
     * @param kernelMs   length of the real-time kernel where a scenario does not fix it
     * @param otherMs    length of the best-effort kernels where a scenario does not fix it
     * @param others     numbers of best-effort processes of the scenario {@code long}
     * @param strategies in the order of the table; a scenario leaves out those that say nothing in it
     * @return long kernels with every strategy; kernels shorter than a time slice; two real-time processes; segments
     *     back to back; a control loop and a camera that are anticipated; what a switch of contexts costs; a task
     *     that does not keep to its period; a robot; inference serving; a loop of 1 kHz; PyTorch programs as users
     *     write them; two GPUs
     */
    public static List<GpuScenario> all(final double kernelMs, final double otherMs, final List<Integer> others,
        final List<GpuStrategy> strategies) {
        return List.of(
            new LoadScenario("long", kernelMs, otherMs, others,
                strategies.stream().filter(s -> s != GpuStrategy.HELD).toList()),
            new LoadScenario("short", SHORT_MS, SHORT_OTHER_MS, List.of(SHORT_OTHERS),
                strategies.stream().filter(SHORT_STRATEGIES::contains).toList()),
            new LevelsScenario(), new BurstScenario(),
            new PeriodicScenario(new PeriodicJob("control", CONTROL_MS, CONTROL_KERNELS, CONTROL_PERIOD_MS,
                CONTROL_FACTOR), List.of(CONTROL_OTHER_MS, SHORT_OTHER_MS)),
            new PeriodicScenario(new PeriodicJob("periodic", PERIODIC_MS, 1, PERIODIC_PERIOD_MS, PERIODIC_FACTOR),
                List.of(CONTROL_OTHER_MS)),
            new SwitchScenario(), new DisturbScenario(), new RobotScenario(), new DisbScenario(),
            new LoopScenario(),
            new TorchScenario("pytorch", "cnn", CNN_PERIOD_MS), new TorchScenario("pytorch-eager", "vit",
                VIT_PERIOD_MS), new TorchScenario("pytorch-decode", "llm", LLM_PERIOD_MS),
            new GpusScenario(kernelMs, otherMs));
    }

    /** Their names, as {@code --scenarios} takes them. */
    public static List<String> names() {
        return all(SHORT_MS, SHORT_OTHER_MS, List.of(), List.of()).stream().map(GpuScenario::name).toList();
    }
}
