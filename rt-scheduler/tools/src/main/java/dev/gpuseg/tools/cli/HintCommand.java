/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** The former name of {@link SetCommand}; {@code gpuseg_hint} of the library is something else. */
@Command(name = "hint", hidden = true, mixinStandardHelpOptions = true,
    description = "Former name of `gpuseg set`.")
final class HintCommand extends SetCommand {
    @Spec
    private CommandSpec own;

    @Override
    public Integer call() {
        own.commandLine().getErr().println("gpuseg: `gpuseg hint` is `gpuseg set` now");
        return super.call();
    }
}
