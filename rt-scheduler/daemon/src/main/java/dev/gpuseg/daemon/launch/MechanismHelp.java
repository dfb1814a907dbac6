/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import dev.gpuseg.mechanisms.MechanismCatalog;
import dev.gpuseg.mechanisms.MechanismDescription;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import picocli.CommandLine.IModelTransformer;
import picocli.CommandLine.Model.CommandSpec;

/** Lists the rows of the {@link MechanismCatalog} at the end of a command's help, and offers their names. */
final class MechanismHelp implements IModelTransformer, Iterable<String> {
    @Override
    public CommandSpec transform(final CommandSpec spec) {
        spec.usageMessage().footer(lines().toArray(new String[0]));
        return spec;
    }

    @Override
    public Iterator<String> iterator() {
        return Stream.concat(Stream.of(MechanismCatalog.AUTO),
            MechanismCatalog.all().stream().map(MechanismDescription::name)).iterator();
    }

    private static List<String> lines() {
        final List<String> lines = new ArrayList<>(List.of("",
            "Mechanisms, best first; `gpuseg doctor` says which work on this machine. auto takes the first of "
                + taken(MechanismDescription::automatic) + " that works, or " + taken(MechanismDescription::simulated)
                + " where its virtual GPU runs:"));
        for (final MechanismDescription m : MechanismCatalog.all()) {
            lines.add("  " + m.name() + " (level " + m.level() + (m.experimental() ? ", experimental" : "") + "): "
                + m.summary() + ". " + capitalised(m.consequence()) + "."
                + (m.experimental() ? " Tested against " + m.testedOn() + "." : ""));
        }
        return lines;
    }

    private static String taken(final Predicate<MechanismDescription> which) {
        return MechanismCatalog.all().stream().filter(which).map(MechanismDescription::name)
            .collect(Collectors.joining(" and "));
    }

    /** The caveat to show behind the name, in parentheses; may be empty. */
    static String caveat(final String name) {
        final String caveat = MechanismCatalog.get(name).caveat();
        return caveat.isEmpty() ? "" : " (" + caveat + ")";
    }

    private static String capitalised(final String clause) {
        return Character.toUpperCase(clause.charAt(0)) + clause.substring(1);
    }
}
