/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import dev.gpuseg.daemon.policy.PolicySource;
import java.nio.file.Path;
import picocli.CommandLine.Option;

/** The jar whose policies a command knows beside those of the program. */
public final class PolicyJarOption {
    @Option(names = "--policy-jar", paramLabel = "FILE",
        description = "Jar with further policies, as for `gpuseg run`. Its code runs in this program.")
    private Path file;

    /** For picocli. */
    public PolicyJarOption() {
        // nothing to set up
    }

    /**
     * Opens it.
     *
     * @return the policies of the program, and of the jar if one is given
     * @throws IllegalArgumentException if the jar cannot be used, in one line
     */
    public PolicySource open() {
        return PolicySource.open(file);
    }

    /** The jar, null if none is given. */
    public Path file() {
        return file;
    }
}
