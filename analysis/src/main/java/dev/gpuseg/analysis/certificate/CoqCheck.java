/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.certificate;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Has {@code coqc} check a certificate with the checker of {@code analysis/coq/theories}, whose sources are resources
 * of this package. Java writes the numbers down as a Coq term and reads the verdict; it compares nothing itself.
 */
public final class CoqCheck {
    /** What to type where {@code coqc} is missing. */
    public static final String INSTALL = "sudo apt-get install coq";

    private static final List<String> THEORIES = List.of("Recurrence", "Checker");
    private static final Pattern VERDICT = Pattern.compile("=\\s*\\[(.*?)]\\s*:\\s*list failure", Pattern.DOTALL);
    private static final Pattern FAILURE = Pattern.compile("([A-Z]\\w+)((?:\\s+\\d+)*)");

    /** {@code coqc} is not installed. */
    public static final class MissingException extends IOException {
        private static final long serialVersionUID = 1;

        MissingException(final IOException cause) {
            super("coqc is missing; type: " + INSTALL, cause);
        }
    }

    private final String coqc;

    /**
     * A check by a program.
     *
     * @param coqc name or path of the Coq compiler
     */
    public CoqCheck(final String coqc) {
        this.coqc = coqc;
    }

    /**
     * Checks a certificate.
     *
     * @param certificate any certificate
     * @return why it is rejected, one line each; empty = accepted
     * @throws MissingException if there is no such program
     * @throws IOException      if it fails
     */
    public List<String> failures(final Certificate certificate) throws IOException {
        final Path directory = Files.createTempDirectory("gpuseg-verify");
        try {
            for (final String theory : THEORIES) {
                try (InputStream source = CoqCheck.class.getResourceAsStream(theory + ".v")) {
                    Files.copy(source, directory.resolve(theory + ".v"));
                }
                compile(directory, theory);
            }
            Files.writeString(directory.resolve("Verdict.v"), verdict(certificate));
            return parse(certificate, compile(directory, "Verdict"));
        } finally {
            delete(directory);
        }
    }

    /**
     * The certificate as a Coq term of the type {@code certificate} of {@code Checker.v}.
     *
     * @param certificate any certificate
     * @return the term
     */
    public static String term(final Certificate certificate) {
        return "Certificate " + list(certificate.gpus().stream()
            .map(g -> "GpuLine " + numbers(g.epsilonNs(), g.stallNs()))) + "\n  " + list(certificate.tasks().stream()
                .map(t -> "TaskLine " + numbers(t.cpu(), t.gpu(), t.process(), t.priority(), t.gpuPriority(),
                    t.periodNs(), t.deadlineNs(), t.jitterNs(), t.blockingNs(), t.cpuNs(), t.epsilonNs(),
                    t.responseNs()) + " " + list(t.segments().stream()
                        .map(s -> "SegmentLine " + numbers(s.hostNs(), s.deviceNs(), s.totalNs(),
                            s.windowNs())))));
    }

    private static String verdict(final Certificate certificate) {
        return "From Coq Require Import List NArith.\nFrom Gpuseg Require Import Recurrence Checker.\n"
            + "Import ListNotations.\nDefinition c : certificate :=\n  " + term(certificate) + ".\n"
            + "Eval vm_compute in failures c.\n";
    }

    private static String list(final Stream<String> items) {
        return items.collect(Collectors.joining(";\n   ", "[", "]"));
    }

    private static String numbers(final long... values) {
        final List<String> words = new ArrayList<>();
        for (final long value : values) {
            words.add(value + "%N");
        }
        return String.join(" ", words);
    }

    private String compile(final Path directory, final String theory) throws IOException {
        final ProcessBuilder builder = new ProcessBuilder(coqc, "-q", "-Q", directory.toString(), "Gpuseg",
            directory.resolve(theory + ".v").toString());
        final Process process;
        try {
            process = builder.redirectErrorStream(true).start();
        } catch (final IOException e) {
            throw new MissingException(e);
        }
        final String said;
        try (InputStream output = process.getInputStream()) {
            process.getOutputStream().close();
            said = new String(output.readAllBytes(), StandardCharsets.UTF_8);
        }
        try {
            if (process.waitFor() != 0) {
                throw new IOException("coqc failed on " + theory + ".v: " + said.strip());
            }
        } catch (final InterruptedException e) {
            process.destroy();
            Thread.currentThread().interrupt();
            throw new IOException("interrupted while coqc ran", e);
        }
        return said;
    }

    private static List<String> parse(final Certificate certificate, final String said) throws IOException {
        final Matcher verdict = VERDICT.matcher(said);
        if (!verdict.find()) {
            throw new IOException("coqc printed no verdict: " + said.strip());
        }
        final List<String> failures = new ArrayList<>();
        for (final String item : verdict.group(1).split(";")) {
            if (item.isBlank()) {
                continue;
            }
            final Matcher failure = FAILURE.matcher(item.strip());
            if (!failure.matches()) {
                throw new IOException("coqc printed an unknown verdict: " + item.strip());
            }
            failures.add(message(certificate, failure.group(1), failure.group(2).strip().split("\\s+")));
        }
        return failures;
    }

    private static String message(final Certificate certificate, final String name, final String[] words) {
        final int[] number = Stream.of(words).mapToInt(Integer::parseInt).toArray();
        if (name.equals("StalledGpu")) {
            return "GPU " + number[0] + ": stall_ns is not 0; the theorem knows no stops by others (" + name + ")";
        }
        final String first = "task \"" + certificate.tasks().get(number[0]).name() + "\"";
        final String both = number.length < 2 || number[1] >= certificate.tasks().size() ? first
            : "tasks \"" + certificate.tasks().get(number[0]).name() + "\" and \""
                + certificate.tasks().get(number[1]).name() + "\"";
        final String segment = number.length < 2 ? first : first + ", segment " + number[1];
        return switch (name) {
            case "PeriodIsZero" -> first + ": the period is 0";
            case "DeadlineAbovePeriod" -> first + ": the deadline is above the period";
            case "ResponseAboveDeadline" -> first + ": R is above the deadline";
            case "ResponseBelowRightHandSide" -> first + ": R is below the right-hand side of its recurrence";
            case "WindowBelowRightHandSide" -> segment + ": F is below the right-hand side of its recurrence, and "
                + "below R";
            case "TotalIsNotHostPlusDevice" -> segment + ": total is not host + device";
            case "NoHostPart" -> segment + ": the host part is 0, but the call of end needs the core";
            case "UnknownGpu" -> first + ": there is no such GPU";
            case "BlockingOfCpuOnlyTask" -> first + ": a task without GPU segments declares blocking";
            case "EqualCpuPriorities" -> both + ": equal CPU priorities on one core";
            case "EqualGpuPriorities" -> both + ": equal GPU priorities on one GPU";
            case "GpuOrderIsNotCpuOrder" -> both + ": the order on the GPU is not the order on their core (M6)";
            case "SharedProcess" -> both + ": they share a process, hence a GPU context";
            default -> first + ": rejected";
        } + " (" + name + ")";
    }

    private static void delete(final Path directory) throws IOException {
        final List<Path> paths;
        try (Stream<Path> walk = Files.walk(directory)) {
            paths = walk.sorted(Comparator.reverseOrder()).toList();
        }
        for (final Path path : paths) {
            Files.delete(path);
        }
    }
}
