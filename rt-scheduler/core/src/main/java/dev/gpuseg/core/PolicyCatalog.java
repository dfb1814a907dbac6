/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import dev.gpuseg.core.PolicyAnalysis.Cores;
import dev.gpuseg.core.PolicyAnalysis.Level;
import dev.gpuseg.core.PolicyAnalysis.Waiting;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.Set;

/**
 * All policies, one row each. Commands, help texts, policy files, the simulator and admission ask this catalogue, so
 * that a new policy is one class and one row. Immutable and thread-safe.
 */
public final class PolicyCatalog {
    private static final PolicyCatalog BUILT_IN = new PolicyCatalog(List.of(
        new PolicyDescription(FixedPriority.NAME,
            "Fixed priority: the begun segment of the highest GPU priority has the GPU to itself.",
            List.of(), Set.of(TaskNeed.PRIORITY), true,
            List.of(
                new PolicyAnalysis("gcaps-window-suspend", Level.INTERRUPT, Cores.PRIORITY, Waiting.SUSPEND, false),
                new PolicyAnalysis("turns-suspend", Level.INTERRUPT, Cores.PRIORITY, Waiting.SUSPEND, false),
                new PolicyAnalysis("gcaps-window-busy", Level.INTERRUPT, Cores.PRIORITY, Waiting.BUSY, false),
                new PolicyAnalysis("gcaps-boost-tight-suspend", Level.INTERRUPT, Cores.PRIORITY, Waiting.SUSPEND,
                    true),
                new PolicyAnalysis("gcaps-boost-suspend", Level.INTERRUPT, Cores.PRIORITY, Waiting.SUSPEND, true),
                new PolicyAnalysis("gate-suspend", Level.GATE, Cores.PRIORITY, Waiting.SUSPEND, false),
                new PolicyAnalysis("gate-busy", Level.GATE, Cores.PRIORITY, Waiting.BUSY, false)),
            arguments -> FixedPriority.INSTANCE),
        new PolicyDescription(EarliestDeadlineFirst.NAME,
            "Earliest deadline first: the begun real-time segment of the earliest deadline has the GPU to itself.",
            List.of(), Set.of(TaskNeed.DEADLINE), true,
            List.of(
                new PolicyAnalysis("edf-edf-suspend", Level.INTERRUPT, Cores.DEADLINE, Waiting.SUSPEND, false),
                new PolicyAnalysis("edf-edf-busy", Level.INTERRUPT, Cores.DEADLINE, Waiting.BUSY, false),
                new PolicyAnalysis("edf-fp-suspend", Level.INTERRUPT, Cores.PRIORITY, Waiting.SUSPEND, false),
                new PolicyAnalysis("edf-boost-suspend", Level.INTERRUPT, Cores.PRIORITY, Waiting.SUSPEND, true)),
            arguments -> EarliestDeadlineFirst.INSTANCE),
        new PolicyDescription(HighestClassFirst.NAME,
            "Fixed priority by classes: all begun segments of the highest class run together.",
            List.of(PolicyParameter.integer("class_width", Priority.MIN, Priority.MAX, 1L,
                "number of neighbouring priorities that form one class")),
            Set.of(TaskNeed.PRIORITY), true, List.of(),
            arguments -> new HighestClassFirst((int) arguments.number("class_width"))),
        new PolicyDescription(RoundRobin.NAME,
            "Observe only: every begin is granted at once and the driver shares the GPU out.",
            List.of(), Set.of(), false, List.of(), arguments -> RoundRobin.INSTANCE),
        new PolicyDescription(TimePartitions.NAME,
            "Time partitions: a frame of windows repeats, and each window gives the GPU to one partition.",
            List.of(
                PolicyParameter.duration("frame", 1, TimePartitions.FRAME_MAX_NS, null, "length of the major frame"),
                PolicyParameter.duration("guard", 0, TimePartitions.FRAME_MAX_NS, null,
                    "time before a change of owner in which the GPU is unused: longest tail plus epsilon"),
                PolicyParameter.duration("phase", 0, TimePartitions.FRAME_MAX_NS, 0L,
                    "start of some frame on CLOCK_MONOTONIC"),
                PolicyParameter.policy("inside", FixedPriority.NAME, "the policy that decides inside a window"),
                PolicyParameter.flag("lend_idle", false,
                    "whether others may use a window while its owner has no begun segment"),
                PolicyParameter.list("windows", 1, TimePartitions.WINDOWS_MAX,
                    "a list like [{partition: 1, offset: 0ms, length: 40ms}]",
                    PolicyParameter.integer("partition", 1, TimePartitions.PARTITIONS_MAX, null, "owner"),
                    PolicyParameter.duration("offset", 0, TimePartitions.FRAME_MAX_NS, null, "from the frame's start"),
                    PolicyParameter.duration("length", 1, TimePartitions.FRAME_MAX_NS, null, "guard included"))),
            Set.of(TaskNeed.PARTITION), true,
            List.of(
                new PolicyAnalysis("partition-fp-suspend", Level.INTERRUPT, Cores.PRIORITY, Waiting.SUSPEND,
                    false),
                new PolicyAnalysis("partition-edf-fp-suspend", Level.INTERRUPT, Cores.PRIORITY, Waiting.SUSPEND,
                    false),
                new PolicyAnalysis("partition-edf-edf-suspend", Level.INTERRUPT, Cores.DEADLINE, Waiting.SUSPEND,
                    false)),
            PolicyCatalog::partitions)));

    private final List<PolicyDescription> rows;

    private PolicyCatalog(final List<PolicyDescription> rows) {
        this.rows = List.copyOf(rows);
    }

    private static Policy partitions(final PolicyArguments arguments) {
        final List<PolicyArguments> list = arguments.list("windows");
        final TimePartitions.Window[] windows = new TimePartitions.Window[list.size()];
        for (int i = 0; i < windows.length; i++) {
            final PolicyArguments w = list.get(i);
            windows[i] = new TimePartitions.Window((int) w.number("partition"), w.durationNs("offset"),
                w.durationNs("length"));
        }
        return new TimePartitions(arguments.policy("inside"), arguments.durationNs("frame"),
            arguments.durationNs("phase"), arguments.durationNs("guard"), arguments.flag("lend_idle"), windows);
    }

    /** The policies that come with the program. */
    public static PolicyCatalog builtIn() {
        return BUILT_IN;
    }

    /** The policy where nobody names one: the first row, with its defaults. */
    public Policy standard() {
        return create(rows.get(0).name());
    }

    /**
     * The policy of a daemon that only observes or stops: every begin is granted at once.
     *
     * @return the first that never holds anything back, with its defaults
     */
    public Policy observing() {
        return create(rows.stream().filter(row -> !row.enforces() && row.hasDefaults()).findFirst().orElseThrow()
            .name());
    }

    /** All rows, in the order of help texts; an immutable list. */
    public List<PolicyDescription> all() {
        return rows;
    }

    /** The names, as a sentence lists them, such as {@code fp, edf, classes, rr or partitions}. */
    public String names() {
        return names(rows);
    }

    private static String names(final List<PolicyDescription> of) {
        final StringBuilder text = new StringBuilder();
        for (int i = 0; i < of.size(); i++) {
            text.append(i == 0 ? "" : i == of.size() - 1 ? " or " : ", ").append(of.get(i).name());
        }
        return text.toString();
    }

    /**
     * Looks a row up.
     *
     * @param name of a policy
     * @return its row, empty if there is none
     */
    public Optional<PolicyDescription> find(final String name) {
        return rows.stream().filter(r -> r.name().equals(name)).findAny();
    }

    /**
     * The row of a name.
     *
     * @param name of a policy
     * @return its row
     * @throws IllegalArgumentException if there is no such policy, with the names that exist
     */
    public PolicyDescription get(final String name) {
        return find(name).orElseThrow(() -> new IllegalArgumentException("policy \"" + name + "\" is unknown; use "
            + names()));
    }

    /**
     * Makes a policy whose parameters all have defaults.
     *
     * @param name of a policy
     * @return the policy
     * @throws IllegalArgumentException if there is no such policy, or a parameter must be given
     */
    public Policy create(final String name) {
        return create(name, Map.of());
    }

    /**
     * Makes a policy.
     *
     * @param name      of a policy
     * @param arguments by the names of its parameters: {@link Long} or {@link Integer} for numbers and durations (ns),
     *                  {@link Boolean}, {@link String} for the name of another policy, {@link List} of {@link Map} for
     *                  lists. The parameters of a policy inside this one stand in the same map
     * @return the policy
     * @throws IllegalArgumentException if there is no such policy or a value is missing, unknown or out of range
     */
    public Policy create(final String name, final Map<String, ?> arguments) {
        final Map<String, Object> left = new HashMap<>(arguments);
        final Policy policy = take(name, left);
        if (!left.isEmpty()) {
            final List<String> known = get(name).parameterNames();
            throw new IllegalArgumentException("policy " + name + ": \"" + left.keySet().iterator().next()
                + "\" is none of its parameters; " + (known.isEmpty() ? "it has none"
                : "use " + String.join(", ", known)));
        }
        return policy;
    }

    Policy take(final String name, final Map<String, Object> arguments) {
        final PolicyDescription row = get(name);
        final Policy policy = row.factory().apply(PolicyArguments.take(this, row, arguments));
        if (!row.name().equals(policy.name())) {   // rows are looked up by it: analyses, journals
            throw new IllegalArgumentException("policy " + row.name() + ": its factory makes a policy that calls "
                + "itself \"" + policy.name() + "\"; give both one name");
        }
        return policy;
    }

    /**
     * This catalogue and one more policy.
     *
     * @param row the policy
     * @return another catalogue
     * @throws IllegalArgumentException if a policy of that name is there already
     */
    public PolicyCatalog with(final PolicyDescription row) {
        if (find(row.name()).isPresent()) {
            throw new IllegalArgumentException("policy \"" + row.name() + "\" exists already; give yours another name");
        }
        final List<PolicyDescription> more = new ArrayList<>(rows);
        more.add(row);
        return new PolicyCatalog(more);
    }

    /**
     * This catalogue and the policies that a class loader finds by itself (not its parents): providers of
     * {@link PolicyProvider} and of {@link Policy}.
     *
     * @param loader of a jar from outside
     * @param source name of that jar, for error messages
     * @return another catalogue
     * @throws IllegalArgumentException if there is no policy, one cannot be made, clashes with another one, or claims
     *     an analysis; in one line
     */
    public PolicyCatalog with(final ClassLoader loader, final String source) {
        PolicyCatalog all = this;
        try {
            for (final PolicyProvider provider : own(PolicyProvider.class, loader)) {
                final PolicyDescription row = provider.description();
                if (row == null) {
                    throw new IllegalArgumentException(provider.getClass().getName() + " describes no policy");
                }
                if (!row.analyses().isEmpty()) {
                    throw new IllegalArgumentException("policy " + row.name() + ": a policy from a jar cannot name an "
                        + "analysis that holds for it; leave analyses empty");
                }
                all = all.with(row);
            }
            for (final Policy policy : own(Policy.class, loader)) {
                all = all.with(PolicyDescription.of(policy, "From " + source + ": " + policy.getClass().getName()
                    + "."));
            }
        } catch (final ServiceConfigurationError | RuntimeException | LinkageError e) {
            throw new IllegalArgumentException(source + ": " + oneLine(e), e);
        }
        if (all == this) {
            throw new IllegalArgumentException(source + ": it offers no policy; name the class in META-INF/services/"
                + Policy.class.getName());
        }
        return all;
    }

    private static <T> List<T> own(final Class<T> service, final ClassLoader loader) {
        final List<T> found = new ArrayList<>();
        for (final T provider : ServiceLoader.load(service, loader)) {
            if (provider.getClass().getClassLoader() == loader) {
                found.add(provider);
            }
        }
        return found;
    }

    /** What went wrong, with its cause: a constructor that throws is wrapped by the loader. */
    private static String oneLine(final Throwable e) {
        final String said = e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
        final String why = e.getCause() == null ? "" : ": " + e.getCause();
        return (said + why).replaceAll("\\s*\\R\\s*", " ");
    }
}
