/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.cli;

import dev.gpuseg.tools.cli.SweepOptions;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** {@code gpuseg-fleet campaign}: bounds against simulated responses, on Spark. */
@Command(name = "campaign", mixinStandardHelpOptions = true,
    description = {"Compare every bound with simulated response times on Spark: sweep --figure soundness.",
        "Exit status: 0 done, 1 failure, 2 wrong use, 3 a bound that claims to be sound was exceeded."})
final class CampaignCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Mixin
    private SweepOptions options;

    @Mixin
    private EngineOptions where;

    @Override
    public Integer call() throws IOException, InterruptedException {
        return FleetSweepCommand.run(spec, List.of(SweepOptions.SOUNDNESS), options, where);
    }
}
