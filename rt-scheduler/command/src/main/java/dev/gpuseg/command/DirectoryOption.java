/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.command;

import dev.gpuseg.ipc.RuntimeDirectory;
import picocli.CommandLine.Option;

/** Where the daemon is. */
public final class DirectoryOption {
    @Option(names = "--dir", paramLabel = "DIR",
        description = "Runtime directory (default: $GPUSEG_DIR, else /run/gpuseg if it exists, else /dev/shm/gpuseg "
            + "for root, else $XDG_RUNTIME_DIR/gpuseg, else /dev/shm/gpuseg-UID; a client that finds no daemon there "
            + "takes that of root in /dev/shm/gpuseg).")
    private String directory;

    /** Where a daemon is started: that of the option, else of the environment, else the default. */
    public RuntimeDirectory resolve() {
        return RuntimeDirectory.resolve(directory);
    }

    /** Where a client looks for a daemon that runs: the same, but root's daemon is found, too. */
    public RuntimeDirectory find() {
        return RuntimeDirectory.find(directory);
    }
}
