/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.cli;

import dev.gpuseg.fleet.engine.Engine;
import picocli.CommandLine.Option;

/** Where the work runs. */
final class EngineOptions {
    private static final int PARTITIONS_MAX = 1_000_000;

    @Option(names = "--master", paramLabel = "URL", defaultValue = "local[*]",
        description = "local[N] or local[*] for this process, spark://HOST:PORT for a cluster (default: "
            + "${DEFAULT-VALUE}).")
    private String master;

    @Option(names = "--partitions", paramLabel = "N", defaultValue = "0",
        description = "Parts into which the work is divided, 1..1000000 (default: four for each core). The figures do "
            + "not depend on it.")
    private int partitions;

    void check() {
        if (partitions < 0 || partitions > PARTITIONS_MAX) {
            throw new IllegalArgumentException("--partitions is " + partitions + "; it must be 1.." + PARTITIONS_MAX);
        }
        if (!master.matches("(local(\\[[^\\]]*\\])?|local-cluster\\[.*\\]|spark://.+)")) {
            throw new IllegalArgumentException("--master is '" + master
                + "'; it must be local[*], local[N], local-cluster[N,CORES,MB] or spark://HOST:PORT");
        }
    }

    Engine start(final String name) {
        return Engine.start("gpuseg-fleet " + name, master, partitions);
    }
}
