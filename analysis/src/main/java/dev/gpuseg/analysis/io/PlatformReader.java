/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.PlatformLimits;
import dev.gpuseg.analysis.model.SpaceLimits;
import dev.gpuseg.analysis.model.TurnLimits;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Reads the platform of a task set: its own keys, and those of the measured profile that it names. Profiles are read
 * once. Not thread-safe.
 */
final class PlatformReader {
    private static final Set<String> PLATFORM_KEYS = Set.of("cpus", "gpus", "epsilon", "alpha", "theta", "timeslice",
        "optimistic", "profile", "description", "measured", "stall", "amd", "quiet", "churn", "simulated",
        "space", "clock", "newcomers", "contexts", "samples", "turns");
    private static final Set<String> GPU_KEYS = Set.of("epsilon", "alpha", "theta", "timeslice", "stall", "amd");
    private static final Set<String> QUIET_KEYS = Set.of("epsilon", "alpha");
    private static final Set<String> STALL_KEYS = Set.of("length", "period");
    private static final Set<String> SPACE_KEYS = Set.of("reserve", "slowdown", "in_flight");
    private static final Set<String> TURN_KEYS = Set.of("slice", "contexts", "wait", "samples", "together");
    private static final Set<String> NEWCOMER_KEYS = Set.of("delay", "period");

    /** Follows the profile's name in reports. */
    private static final String WITHOUT_CHURN = " without churn";

    private final NodeReader files = new NodeReader("profile", TaskSetReader.MAX_BYTES, "give one file each");
    private final List<Path> profileDirectories;
    private final Map<String, Node> profiles = new HashMap<>();
    private final Map<String, Path> profileFiles = new HashMap<>();
    private PlatformOrigin origin;

    PlatformReader(final List<Path> profileDirectories) {
        this.profileDirectories = List.copyOf(profileDirectories);
    }

    /** A profile alone. */
    Platform readProfile(final Path path) throws IOException {
        return toPlatform(profile(path), path.toAbsolutePath().getParent());
    }

    /** Where the constants of the platform that was read last come from; null before the first. */
    PlatformOrigin origin() {
        return origin;
    }

    /** What stands under platform; directory = where the profiles of this file are, or null. */
    Platform toPlatform(final Node given, final Path directory) throws InvalidFileException {
        Node node = given;
        Node base = null;
        String profile = null;
        if (given.kind() == Node.Kind.TEXT) {
            profile = given.text();
            base = namedProfile(given, directory);
            node = base;
        } else {
            given.requireMapping(PLATFORM_KEYS);
            final Node named = given.get("profile");
            if (named != null) {
                profile = named.word();
                base = namedProfile(named, directory);
            }
            final Node churn = given.get("churn");
            if (churn != null) {
                base = quiet(churn, base);
                profile += WITHOUT_CHURN;
            }
        }
        origin = PlatformOrigin.of(given, base, profile, base == null ? null
            : profileFiles.get(given.kind() == Node.Kind.TEXT ? given.text() : given.get("profile").text()));
        final Node cpus = lookUp(node, base, "cpus");
        if (cpus == null) {
            throw given.refusal("platform: cpus is missing; write the number of cores, like cpus: 4");
        }
        final int count = cpus.integer(1, Platform.MAX_CPUS);
        final Node optimistic = lookUp(node, base, "optimistic");
        final List<Gpu> gpus = gpus(lookUp(node, base, "gpus"), toGpu(node, base, null));
        try {
            return new Platform(count, gpus, optimistic != null && optimistic.flag(), profile, isSimulated(node, base),
                space(lookUp(node, base, "space")), limits(node, base, given.get("churn") != null));
        } catch (final InvalidModelException e) {
            throw given.refusal(e.getMessage());
        }
    }

    /** The set says so, or the profile says so of what was measured. */
    private static boolean isSimulated(final Node node, final Node base) throws InvalidFileException {
        final Node own = lookUp(node, base, "simulated");
        final Node measured = lookUp(node, base, "measured");
        final Node flag = own != null || measured == null || measured.kind() != Node.Kind.MAPPING ? own
            : measured.get("simulated");
        return flag != null && flag.flag();
    }

    private static PlatformLimits limits(final Node node, final Node base, final boolean quiet)
        throws InvalidFileException {
        final Node clock = lookUp(node, base, "clock");
        final Node newcomers = lookUp(node, base, "newcomers");
        final Node contexts = lookUp(node, base, "contexts");
        final Node samples = lookUp(node, base, "samples");
        long delayNs = 0;
        long periodNs = 0;
        final boolean none = newcomers != null && newcomers.kind() == Node.Kind.TEXT;
        if (none && !"none".equals(newcomers.text())) {
            throw newcomers.refuse("is " + newcomers.show() + "; write newcomers: none if no process makes a context "
                + "of the GPU while a real-time task is open, or newcomers: {delay: 60ms, period: 2s}");
        }
        if (newcomers != null && !none) {
            newcomers.requireMapping(NEWCOMER_KEYS);
            delayNs = newcomers.required("delay").durationNs();
            periodNs = newcomers.required("period").durationNs();
            if (delayNs == 0) {
                throw newcomers.required("delay").refuse("is 0; write the longest time from the first work of a new "
                    + "context until it is disabled, like 60ms, or newcomers: none");
            }
        }
        return new PlatformLimits(clockPermille(clock), none || quiet, delayNs, periodNs,
            contexts == null ? 0 : contexts.integer(1, PlatformLimits.MAX_CONTEXTS),
            samples == null ? 0 : samples.integer(1, Integer.MAX_VALUE), turns(turnsOf(node, base)));
    }

    /** A set may say that its tasks are together, and leave what turns cost to the profile. */
    private static Node turnsOf(final Node node, final Node base) throws InvalidFileException {
        final Node own = node.get("turns");
        final Node measured = base == null ? null : base.get("turns");
        final boolean isPart = own != null && measured != null && own.kind() == Node.Kind.MAPPING
            && own.get("slice") == null && own.get("contexts") == null && own.get("wait") == null;
        return isPart ? own.over(measured) : lookUp(node, base, "turns");
    }

    /** How best effort takes turns; null if that is not said. */
    private static TurnLimits turns(final Node node) throws InvalidFileException {
        if (node == null) {
            return null;
        }
        node.requireMapping(TURN_KEYS, "{slice: 100us, contexts: 2}");
        final Node slice = node.required("slice");
        if (slice.durationNs() == 0) {
            throw slice.refuse("is 0; write the longest time slice of a best-effort context, like 500us, which the "
                + "daemon gives");
        }
        final Node wait = node.get("wait");
        final Node samples = node.get("samples");
        final Node together = node.get("together");
        if (wait != null && wait.durationNs() == 0) {
            throw wait.refuse("is 0; write the longest wait of a begin that was measured, like 1.2ms, or leave it out");
        }
        if (samples != null && wait == null) {
            throw samples.refuse("is " + samples.show() + ", and wait is missing, of which it says how many were "
                + "measured; write wait: 1.2ms, or leave samples out");
        }
        return new TurnLimits(slice.durationNs(), node.required("contexts").integer(1, PlatformLimits.MAX_CONTEXTS),
            wait == null ? 0 : wait.durationNs(), samples == null ? 0 : samples.integer(1, Integer.MAX_VALUE),
            together != null && together.flag());
    }

    /** By how much device times are longer at the lowest clock; 0 if that is not said. */
    private static int clockPermille(final Node node) throws InvalidFileException {
        if (node == null) {
            return 0;
        }
        final String text = node.kind() == Node.Kind.INTEGER || node.kind() == Node.Kind.DECIMAL ? node.text() : "";
        final int permille = text.matches("([1-9]|10)(\\.[0-9]{1,3})?")
            ? new BigDecimal(text).movePointRight(PlatformLimits.CLOCK_DIGITS).intValueExact() : 0;
        if (permille < PlatformLimits.CLOCK_MIN || permille > PlatformLimits.CLOCK_MAX) {
            throw node.refuse("is " + node.show() + "; write how many times as long device parts take at the lowest "
                + "clock, 1..10 with three digits at most, like clock: 1.53; 1 if they were measured there");
        }
        return permille;
    }

    /** What runs beside a segment. */
    private static SpaceLimits space(final Node node) throws InvalidFileException {
        if (node == null) {
            return SpaceLimits.NONE;
        }
        node.requireMapping(SPACE_KEYS, "{reserve: 12%, slowdown: 50%, in_flight: 2ms}");
        final Node reserve = node.get("reserve");
        return new SpaceLimits(reserve == null ? 0 : reserve.percent(1, SpaceLimits.MAX_RESERVE),
            node.required("slowdown").percent(0, SpaceLimits.MAX_SLOWDOWN), node.required("in_flight").durationNs());
    }

    /** The profile with the delays that were measured while no process made or freed a context. */
    private static Node quiet(final Node churn, final Node base) throws InvalidFileException {
        if (!"none".equals(churn.text())) {
            throw churn.refuse("is " + churn.show() + "; write churn: none if no process makes or frees a context of "
                + "the GPU while the tasks run, or leave it out");
        }
        final Node quiet = base == null ? null : base.get("quiet");
        if (quiet == null) {
            throw churn.refusal("platform: churn: none needs a profile with the key quiet; calibrate writes one, give "
                + "epsilon and alpha here, or leave churn out");
        }
        return quiet.requireMapping(QUIET_KEYS).over(base);
    }

    /** A list of GPUs, or their number; common = what all have, or null. */
    private static List<Gpu> gpus(final Node node, final Gpu common) throws InvalidFileException {
        final List<Gpu> gpus = new ArrayList<>();
        if (node == null) {
            if (common != null) {
                gpus.add(common);
            }
        } else if (node.kind() == Node.Kind.LIST) {
            for (final Node item : node.requireList("gpu", "a list of GPUs")) {
                gpus.add(needEpsilon(item, toGpu(item.requireMapping(GPU_KEYS), null, common)));
            }
        } else {
            final int number = node.integer(0, Platform.MAX_GPUS);
            for (int i = 0; i < number; i++) {
                gpus.add(needEpsilon(node, common));
            }
        }
        return gpus;
    }

    private static Gpu needEpsilon(final Node node, final Gpu gpu) throws InvalidFileException {
        if (gpu == null) {
            throw node.refusal("platform: epsilon is missing; write the update delay of the GPU, like epsilon: 1ms");
        }
        return gpu;
    }

    /** Constants of one GPU from its own keys over {@code defaults}; null if there is no epsilon to be found. */
    private static Gpu toGpu(final Node node, final Node base, final Gpu defaults) throws InvalidFileException {
        final Node epsilonNode = lookUp(node, base, "epsilon");
        final Node alphaNode = lookUp(node, base, "alpha");
        final Node thetaNode = lookUp(node, base, "theta");
        final Node timesliceNode = lookUp(node, base, "timeslice");
        final Node amdNode = lookUp(node, base, "amd");
        if (amdNode != null) {   // what a profile leaves unknown is given key by key
            final Node amd = base == null ? amdNode : amdNode.over(base.get("amd"));
            return toAmdGpu(amd, lookUp(node, base, "stall"), epsilonNode, alphaNode, thetaNode, timesliceNode);
        }
        if (epsilonNode == null && alphaNode == null && defaults == null) {
            return null;
        }
        final long theta = thetaNode != null ? thetaNode.durationNs()
            : defaults != null ? defaults.thetaNs() : Gpu.DEFAULT_THETA_NS;
        final long timeslice = timesliceNode != null ? timesliceNode.durationNs()
            : defaults != null ? defaults.timesliceNs() : Gpu.DEFAULT_TIMESLICE_NS;
        final long epsilon;
        if (epsilonNode != null) {
            epsilon = epsilonNode.durationNs();
        } else if (alphaNode != null) {
            epsilon = alphaNode.durationNs() + theta;
        } else {
            epsilon = defaults.epsilonNs();
        }
        final long alpha = alphaNode != null ? alpha(alphaNode, epsilon) : Math.max(0, epsilon - theta);
        try {
            final Gpu gpu = new Gpu(epsilon, alpha, theta, timeslice);
            final Node stallNode = lookUp(node, base, "stall");
            return stallNode != null ? withStalls(gpu, stallNode)
                : defaults == null ? gpu : gpu.withStalls(defaults.stallNs(), defaults.stallPeriodNs());
        } catch (final InvalidModelException e) {
            throw (timesliceNode != null ? timesliceNode : node).refusal(e.getMessage());
        }
    }

    private static long alpha(final Node node, final long epsilonNs) throws InvalidFileException {
        final long alphaNs = node.durationNs();
        if (alphaNs > epsilonNs) {
            throw node.refuse("is " + Durations.format(alphaNs) + ", more than epsilon = "
                + Durations.format(epsilonNs) + "; epsilon contains alpha");
        }
        return alphaNs;
    }

    private static Gpu withStalls(final Gpu gpu, final Node node) throws InvalidFileException {
        node.requireMapping(STALL_KEYS);
        return gpu.withStalls(node.required("length").durationNs(), node.required("period").durationNs());
    }

    private static Gpu toAmdGpu(final Node amd, final Node stall, final Node epsilon, final Node alpha,
        final Node theta, final Node timeslice) throws InvalidFileException {
        if (stall != null) {
            throw stall.refusal("platform: stall beside amd; write amd: foreign instead");
        }
        final AmdCosts costs = new AmdCosts(amd);
        try {
            final long thetaNs = costs.required(theta, "theta", "one switch between two processes that share the GPU");
            final long sliceNs = costs.required(timeslice, "timeslice", "the time slice that the firmware gives");
            final boolean measured = !AmdCosts.isUnknown(epsilon);
            final long epsilonNs = measured ? epsilon.durationNs() : costs.epsilonNs();
            // an alpha that was measured belongs to the epsilon that was
            final long alphaNs = measured && !AmdCosts.isUnknown(alpha) ? alpha(alpha, epsilonNs)
                : Math.max(0, epsilonNs - thetaNs);
            return new Gpu(epsilonNs, alphaNs, thetaNs, sliceNs, costs.stallNs(), costs.stallPeriodNs());
        } catch (final InvalidModelException e) {
            throw amd.refusal(e.getMessage());
        }
    }

    private static Node lookUp(final Node node, final Node base, final String key) {
        final Node own = node.get(key);
        return own != null || base == null ? own : base.get(key);
    }

    private Node namedProfile(final Node named, final Path directory) throws InvalidFileException {
        final String name = named.text();
        if (!name.matches("[A-Za-z0-9][A-Za-z0-9._-]{0,99}")) {
            throw named.refusal("platform: profile is " + named.show()
                + "; a profile name has letters, digits, '.', '_' and '-' only");
        }
        final Node known = profiles.get(name);
        if (known != null) {
            return known;
        }
        final List<Path> places = new ArrayList<>();
        if (directory != null) {
            places.add(directory);
        }
        places.addAll(profileDirectories);
        for (final Path place : places) {
            for (final String suffix : new String[] {".yaml", ".yml", ".json"}) {
                final Path path = place.resolve(name + suffix);
                if (Files.isRegularFile(path)) {
                    final Node profile = profile(path);
                    if (profile.get("churn") != null) {
                        throw profile.get("churn").refusal("platform: churn stands in a profile; it is a statement "
                            + "of the task set that names the profile");
                    }
                    profiles.put(name, profile);
                    profileFiles.put(name, path);
                    return profile;
                }
            }
        }
        throw named.refusal("platform: there is no profile " + named.show() + " (looked for " + name
            + ".yaml in " + places.size() + " places); write one with 'calibrate', or give cpus and epsilon here");
    }

    private Node profile(final Path path) throws InvalidFileException {
        try {
            return files.read(path).requireMapping(PLATFORM_KEYS).callIt("platform");
        } catch (final InvalidFileException e) {
            throw e;
        } catch (final IOException e) {
            throw new InvalidFileException(path.toString(), 0, "cannot be read: " + ResultFile.reason(e));
        }
    }
}
