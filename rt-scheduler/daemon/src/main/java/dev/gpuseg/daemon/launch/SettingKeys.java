/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import dev.gpuseg.analysis.rta.CoreOrder;
import dev.gpuseg.command.DurationConverter;
import dev.gpuseg.command.SizeConverter;
import dev.gpuseg.core.Unmanaged;
import dev.gpuseg.daemon.conductor.UserLimits;
import dev.gpuseg.daemon.space.Space;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.ClientQueue;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.mechanisms.observer.ObserverMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.IModelTransformer;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Option;

/**
 * Settings of the daemon that are keys of its settings file only: who sets one does so once for a machine. They are
 * described as options are, so that a key is converted, refused, shown and documented like any other; none of them is
 * an option of {@code gpuseg run}.
 */
@Command(name = "keys")
public final class SettingKeys {
    private static final int WATCHDOG_MIN_MS = 40;
    private static final int WATCHDOG_MAX_MS = 10_000;

    @Option(names = "hold-launches", defaultValue = "false",
        description = "Hold launches of best-effort programs under `gpuseg exec` besides, where the mechanism disables "
            + "work by itself (levels 2 and 3). Mechanism launch always does (default: ${DEFAULT-VALUE}).")
    private boolean holdLaunches;

    @Option(names = "space-reserve", paramLabel = "PERCENT", defaultValue = "" + Space.RESERVE_DEFAULT,
        description = "With --space: the part of the GPU's multiprocessors that is kept free for tasks that have a "
            + "part of it (`gpuseg exec --reserve`), 1..90 (default: ${DEFAULT-VALUE}).")
    private int spaceReserve;

    @Option(names = "space-places", paramLabel = "PERCENT,...", defaultValue = Space.PLACES_DEFAULT,
        description = "With --space: what each best-effort program under `gpuseg exec` may use of the rest, 1..64 "
            + "places; further programs run outside. With most limits cuBLAS 13 computes wrong products: check yours "
            + "(docs/space.md; default: ${DEFAULT-VALUE}).")
    private String spacePlaces;

    @Option(names = "optimistic", defaultValue = "true",
        description = "Let a begin return without waiting if no running segment can outrank its task (default: "
            + "${DEFAULT-VALUE}).")
    private boolean optimistic;

    @Option(names = "anticipation-budget", paramLabel = "PERCENT",
        description = "Share of its time for which best-effort work may stand still because lower work was disabled "
            + "too early or in vain, 0..100. Tasks of higher rank come first (default: 5).")
    private Integer anticipationBudget;

    @Option(names = "journal-size", paramLabel = "SIZE", converter = SizeConverter.class, defaultValue = "256MiB",
        description = "Maximum size of the journal; the oldest quarter is deleted when it is reached (default: "
            + "${DEFAULT-VALUE}).")
    private long journalBytes;

    @Option(names = "queue-size", paramLabel = "SIZE", converter = SizeConverter.class, defaultValue = "1MiB",
        description = "Size of one cycle of each client's queue, a power of two, 256KiB..256MiB. A client that writes "
            + "more while the daemon is held up loses records (default: ${DEFAULT-VALUE}).")
    private long queueBytes;

    @Option(names = "watchdog-period", paramLabel = "DURATION", converter = DurationConverter.class,
        defaultValue = "100ms",
        description = "No context stays disabled for longer than this after the daemon died or hung, 40ms..10s. The "
            + "watchdog enables all contexts when the daemon's heartbeat is nine tenths of this old (default: "
            + "${DEFAULT-VALUE}).")
    private Duration watchdogPeriod;

    @Option(names = "no-watchdog",
        description = "Start no watchdog. A dead daemon can then leave applications frozen.")
    private boolean noWatchdog;

    @Option(names = "warm-up", defaultValue = "true",
        description = "Compile the hot path with synthetic records before clients are accepted (default: "
            + "${DEFAULT-VALUE}).")
    private boolean warmUp;

    @Option(names = "lock-memory",
        description = "Lock the daemon's memory (mlockall): code at its start, everything else from its first use "
            + "(the warm-up uses what a segment does). Needs unlimited locked memory or CAP_IPC_LOCK, else the daemon "
            + "does not start. Where this is not set memory is locked if cpu or priority is, and a refusal is only a "
            + "warning.")
    private Boolean lockMemory;

    @Option(names = "unmanaged", paramLabel = "best-effort|allow", defaultValue = "best-effort",
        description = "Processes that never registered: best-effort disables them while a real-time task uses the "
            + "GPU, allow leaves them alone (default: ${DEFAULT-VALUE}).")
    private String unmanaged;

    @Option(names = "core-order", paramLabel = "fp|edf", defaultValue = "fp",
        description = "How the kernel orders the threads of a core: fp for SCHED_FIFO, edf for SCHED_DEADLINE "
            + "(default: ${DEFAULT-VALUE}).")
    private String cores;

    @Option(names = "admission-grace", paramLabel = "DURATION", converter = DurationConverter.class,
        defaultValue = "30s",
        description = "How long after a restart the place of a task that was admitted before is reserved, 0s..1h "
            + "(default: ${DEFAULT-VALUE}).")
    private Duration grace;

    @Option(names = "observer", paramLabel = "auto|on|off", defaultValue = "auto",
        description = "See processes that use a GPU by a BPF program, as they do it: auto if that works here, on or "
            + "refuse to start, off to scan (default: ${DEFAULT-VALUE}). `gpuseg doctor` says whether it works. "
            + "Mechanisms nvidia, amd and tegra use it; with the others it is of no use.")
    private String observer;

    @Option(names = "protect", paramLabel = "NAME", split = ",",
        description = "Never disable processes that run these programs of root or of the daemon's user, in addition "
            + "to display servers and the driver's services.")
    private List<String> protect = List.of();

    @Option(names = "nvidia-scope", paramLabel = "compute|all", defaultValue = "compute",
        description = "What is disabled of a process on NVIDIA: compute (with graphics), or all (also copies) "
            + "(default: ${DEFAULT-VALUE}).")
    private String nvidiaScope;

    @Option(names = "clients-per-user", paramLabel = "N", defaultValue = "64",
        description = "Maximum number of registered processes of one user, 1..256 (default: ${DEFAULT-VALUE}).")
    private int clientsPerUser;

    @Option(names = "tasks-per-user", paramLabel = "N", defaultValue = "1024",
        description = "Maximum number of open tasks of one user, 1..16384 (default: ${DEFAULT-VALUE}).")
    private int tasksPerUser;

    @Option(names = "limits", paramLabel = "DIR", defaultValue = "/etc/gpuseg/limits.d",
        description = "Limits of users and groups (highest priority, budget, utilization, tasks, clients), from the "
            + "files *.conf of this directory. Built in: priorities up to 49 and a budget of 200ms; up to 99 without a "
            + "budget for group gpuseg-rt and the user who starts the daemon with sudo. Root and the daemon's user "
            + "have no limit (default: ${DEFAULT-VALUE}).")
    private Path limits;

    private CommandSpec spec;

    private SettingKeys() {
    }

    /** All keys with their defaults. */
    static SettingKeys defaults() {
        final SettingKeys keys = new SettingKeys();
        final CommandLine line = new CommandLine(keys);
        line.parseArgs();
        keys.spec = line.getCommandSpec();
        return keys;
    }

    /** The model of the keys, bound to this object: a value that is set there is a value of this object. */
    CommandSpec spec() {
        return spec;
    }

    /** Refuses numbers out of range; the others are refused where they are asked for. */
    void check(final OptionProblems problems) {
        if (watchdogPeriod.toMillis() < WATCHDOG_MIN_MS || watchdogPeriod.toMillis() > WATCHDOG_MAX_MS) {
            problems.add("watchdog-period", "watchdog-period is " + watchdogPeriod.toMillis()
                + "ms; use 40ms..10s (the heartbeat may be 20 ms old)");
        }
        if (queueBytes < ClientQueue.BYTES_MIN || queueBytes > ClientQueue.BYTES_MAX
            || Long.bitCount(queueBytes) != 1) {
            problems.add("queue-size", "queue-size is " + queueBytes + " bytes; use a power of two of 256KiB..256MiB");
        }
        if (journalBytes < JournalAgent.BYTES_MIN) {
            problems.add("journal-size", "journal-size is " + journalBytes + " bytes; use at least 1MiB");
        }
        if (grace.compareTo(Duration.ofHours(1)) > 0) {
            problems.add("admission-grace", "admission-grace is " + grace.toSeconds() + "s; use 0s..3600s");
        }
        problems.isIn("clients-per-user", clientsPerUser, 1, Abi.CLIENTS_MAX);
        problems.isIn("tasks-per-user", tasksPerUser, 1, Abi.CLIENTS_MAX * Abi.SLOTS_MAX);
    }

    boolean holdLaunches() {
        return holdLaunches;
    }

    /** How the GPU is divided; null if that is refused. */
    Space space(final OptionProblems problems) {
        return problems.isIn("space-reserve", spaceReserve, 1, Space.RESERVE_MAX)
            ? problems.in("space-places", () -> Space.of(spaceReserve, spacePlaces)) : null;
    }

    boolean optimistic() {
        return optimistic;
    }

    /** Percent; null if that is for the policy file to say. */
    Integer anticipationBudget(final OptionProblems problems) {
        return anticipationBudget != null && problems.isIn("anticipation-budget", anticipationBudget, 0, 100)
            ? anticipationBudget : null;
    }

    long journalBytes() {
        return journalBytes;
    }

    int queueBytes() {
        return (int) queueBytes;
    }

    /** Milliseconds; 0 = no watchdog. */
    int watchdogPeriodMs() {
        return noWatchdog ? 0 : (int) watchdogPeriod.toMillis();
    }

    boolean warmUp() {
        return warmUp;
    }

    /** Null: it depends on the dispatcher. */
    Boolean lockMemory() {
        return lockMemory;
    }

    long graceNs() {
        return grace.toNanos();
    }

    int clientsPerUser() {
        return clientsPerUser;
    }

    int tasksPerUser() {
        return tasksPerUser;
    }

    List<String> protect() {
        return protect;
    }

    /** Null if it is refused, as with all below. */
    CoreOrder coreOrder(final OptionProblems problems) {
        return problems.in("core-order", () -> CoreOrder.named(cores));
    }

    Unmanaged unmanaged(final OptionProblems problems) {
        return problems.in("unmanaged", () -> switch (unmanaged) {
            case "best-effort" -> Unmanaged.BEST_EFFORT;
            case "allow" -> Unmanaged.ALLOW;
            default -> throw new IllegalArgumentException("unmanaged is " + unmanaged + "; use best-effort or allow");
        });
    }

    ObserverMode observer(final OptionProblems problems) {
        return problems.in("observer", () -> ObserverMode.named(observer));
    }

    /** Whether copies of a process on NVIDIA are disabled, too. */
    Boolean allEngines(final OptionProblems problems) {
        return problems.in("nvidia-scope", () -> switch (nvidiaScope) {
            case "compute" -> false;
            case "all" -> true;
            default -> throw new IllegalArgumentException("nvidia-scope is " + nvidiaScope
                + "; use compute or all");
        });
    }

    UserLimits limits(final OptionProblems problems) {
        return problems.in("limits", () -> limits.equals(UserLimits.DIRECTORY) && !Files.exists(limits)
            ? UserLimits.builtIn() : UserLimits.read(limits));
    }

    /**
     * What to say to a user who types a key as if it were an option.
     *
     * @param typed word of a command line, as {@code --queue-size=1MiB} or {@code --no-warm-up}
     * @return empty if it is no key
     */
    static Optional<String> advice(final String typed) {
        if (!typed.startsWith("--")) {
            return Optional.empty();
        }
        final String word = typed.replaceFirst("=.*", "");
        final List<String> names = List.of(word.substring(2), word.replaceFirst("^--no-", ""));
        return names.stream().filter(name -> defaults().spec.findOption(name) != null).findFirst().map(key ->
            word + " is no option but a key of the settings file; write " + key + ": "
                + defaults().spec.findOption(key).paramLabel().replaceFirst("^<.*", "true|false")
                + " into a file and give it with --config FILE");
    }

    /** Lists the keys at the end of a command's help. */
    static final class Help implements IModelTransformer {
        @Override
        public CommandSpec transform(final CommandSpec command) {
            final List<String> lines = new ArrayList<>(List.of("", "Keys of the settings file that are no options of "
                + "`gpuseg run`, explained in gpuseg.yaml(5):"));
            for (final OptionSpec key : defaults().spec.options()) {
                lines.add("  " + key.longestName() + ": " + String.join(" ", key.description())
                    .replace("${DEFAULT-VALUE}", String.valueOf(key.defaultValueString())).replace("%", "%%"));
            }
            command.usageMessage().footer(lines.toArray(new String[0]));
            return command;
        }
    }
}
