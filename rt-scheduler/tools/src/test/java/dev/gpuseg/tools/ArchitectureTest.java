/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools;

import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.Architectures.layeredArchitecture;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import dev.gpuseg.core.EarliestDeadlineFirst;
import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.HighestClassFirst;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.RoundRobin;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** What Maven modules cannot state: which part may use which library, and no cycles between packages. */
class ArchitectureTest {
    private static JavaClasses classes;

    @BeforeAll
    static void importClasses() {
        classes = new ClassFileImporter().withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
            .importPackages("dev.gpuseg");
        for (final String one : new String[] {"core.SegmentScheduler", "analysis.sim.Simulator", "ipc.Abi",
            "mechanisms.Mechanism", "command.ExitCode", "daemon.process.Daemon", "tools.cli.Gpuseg"}) {
            assertTrue(classes.contain("dev.gpuseg." + one), one + " must be on the class path");
        }
    }

    @Test
    void shouldKeepTheCoreFreeOfEverythingButTheJdkAndAgronaCollections() {
        noClasses().that().resideInAPackage("dev.gpuseg.core..").should().dependOnClassesThat()
            .resideOutsideOfPackages("dev.gpuseg.core..", "java.lang..", "java.util..", "org.agrona.collections..")
            .check(classes);
    }

    @Test
    void shouldLetTheCoreReadNoClockStartNoThreadAndOpenNothing() {
        noClasses().that().resideInAPackage("dev.gpuseg.core..").should().callMethod(System.class, "nanoTime")
            .orShould().callMethod(System.class, "currentTimeMillis").orShould().callMethod(Instant.class, "now")
            .orShould().dependOnClassesThat().belongToAnyOf(Thread.class)
            .orShould().dependOnClassesThat().resideInAnyPackage("java.io..", "java.nio..", "java.net..",
                "java.util.concurrent..", "java.util.logging..", "org.slf4j..").check(classes);
    }

    @Test
    void shouldLetDependenciesBetweenModulesPointOneWayOnly() {
        layeredArchitecture().consideringOnlyDependenciesInAnyPackage("dev.gpuseg..")
            .layer("core").definedBy("dev.gpuseg.core..")
            .layer("analysis").definedBy("dev.gpuseg.analysis..")
            .layer("ipc").definedBy("dev.gpuseg.ipc..")
            .layer("mechanisms").definedBy("dev.gpuseg.mechanisms..")
            .layer("command").definedBy("dev.gpuseg.command..")
            .layer("daemon").definedBy("dev.gpuseg.daemon..")
            .layer("tools").definedBy("dev.gpuseg.tools..")
            .whereLayer("tools").mayNotBeAccessedByAnyLayer()
            .whereLayer("daemon").mayOnlyBeAccessedByLayers("tools")
            .whereLayer("mechanisms").mayOnlyBeAccessedByLayers("daemon", "tools")
            .whereLayer("command").mayOnlyBeAccessedByLayers("daemon", "tools")
            .whereLayer("ipc").mayOnlyBeAccessedByLayers("mechanisms", "command", "daemon", "tools")
            .whereLayer("analysis").mayOnlyBeAccessedByLayers("daemon", "tools")
            .check(classes);
    }

    @Test
    void shouldLetOnlyMechanismsAndPlatformUseJna() {
        noClasses().that().resideOutsideOfPackages("dev.gpuseg.mechanisms..", "dev.gpuseg.ipc.platform..")
            .should().dependOnClassesThat().resideInAPackage("com.sun.jna..").check(classes);
    }

    @Test
    void shouldLetOnlyIpcUseChronicle() {
        noClasses().that().resideOutsideOfPackage("dev.gpuseg.ipc..")
            .should().dependOnClassesThat().resideInAPackage("net.openhft..").check(classes);
    }

    @Test
    void shouldLetOnlyMetricsUseThePrometheusClientAndOnlyTheCommandLineATerminal() {
        noClasses().that().resideOutsideOfPackage("dev.gpuseg.daemon.metrics..").should().dependOnClassesThat()
            .resideInAPackage("io.prometheus..").check(classes);
        noClasses().that().resideOutsideOfPackage("dev.gpuseg.tools..").should().dependOnClassesThat()
            .resideInAPackage("org.jline..").check(classes);
    }

    @Test
    void shouldLetNoPartOfTheDaemonDependOnHowItIsStarted() {
        noClasses().that().resideInAPackage("dev.gpuseg.daemon..").and()
            .resideOutsideOfPackage("dev.gpuseg.daemon.launch..").should().dependOnClassesThat()
            .resideInAnyPackage("dev.gpuseg.daemon.launch..", "picocli..").check(classes);
    }

    /** The way of a decision goes down: the process knows the dispatcher, which knows the enforcers. */
    @Test
    void shouldLetTheWayThroughTheDaemonGoDownOnly() {
        final String daemon = "dev.gpuseg.daemon";
        noClasses().that().resideInAPackage(daemon + ".jvm..").should().dependOnClassesThat(
            resideInAPackage(daemon + "..").and(not(resideInAPackage(daemon + ".jvm..")))).check(classes);
        noClasses().that().resideInAPackage(daemon + ".enforce..").should().dependOnClassesThat(
            resideInAPackage(daemon + "..").and(not(resideInAPackage(daemon + ".enforce..")))).check(classes);
        noClasses().that().resideInAPackage(daemon + ".dispatch..").should().dependOnClassesThat()
            .resideInAnyPackage(daemon + ".process..", daemon + ".launch..").check(classes);
        noClasses().that().resideInAPackage(daemon + "..").and()
            .resideOutsideOfPackages(daemon + ".process..", daemon + ".launch..").should().dependOnClassesThat()
            .resideInAPackage(daemon + ".process..").check(classes);
    }

    @Test
    void shouldLetNothingDependOnTheCommandsButTheirReference() {
        noClasses().that().resideInAPackage("dev.gpuseg.tools..").and()
            .resideOutsideOfPackages("dev.gpuseg.tools.cli..", "dev.gpuseg.tools.reference..").should()
            .dependOnClassesThat().resideInAnyPackage("dev.gpuseg.tools.cli..", "picocli..").check(classes);
    }

    /** What holds for a policy stands in its row of the catalogue: another policy needs no line in daemon and tools. */
    @Test
    void shouldLetDaemonAndToolsKnowNoPolicyByItsClassOrName() throws IOException {
        noClasses().that().resideInAnyPackage("dev.gpuseg.daemon..", "dev.gpuseg.tools..").should()
            .dependOnClassesThat().belongToAnyOf(FixedPriority.class, EarliestDeadlineFirst.class,
                HighestClassFirst.class, RoundRobin.class).check(classes);
        for (final JavaClass one : classes) {
            assertTrue(one.getPackageName().startsWith("dev.gpuseg.core") || one.getInstanceofChecks().stream()
                .noneMatch(check -> check.getRawType().isAssignableTo(Policy.class)), one + " asks what a policy is");
        }
        final String name = PolicyCatalog.builtIn().all().stream().map(row -> "\"" + row.name() + "\"")
            .collect(Collectors.joining("|", "(?:", ")"));
        final Pattern compared = Pattern.compile("[=!]=\\s*" + name + "|" + name + "\\s*[=!]=|" + name
            + "\\.equals\\(|equals\\(" + name + "\\)|case " + name);
        assertTrue(compared.matcher("!\"fp\".equals(policy)").find(), "the pattern finds what it is for");
        for (final Path module : new Path[] {Path.of("..", "daemon"), Path.of("..", "tools")}) {
            try (Stream<Path> sources = Files.walk(module.resolve("src/main/java"))) {
                for (final Path source : sources.filter(file -> file.toString().endsWith(".java")).toList()) {
                    final Matcher found = compared.matcher(Files.readString(source));
                    assertFalse(found.find(), () -> source + " compares the name of a policy: " + found.group());
                }
            }
        }
    }

    @Test
    void shouldHaveNoCyclesBetweenPackages() {
        for (final String module : new String[] {"ipc", "mechanisms", "analysis", "daemon", "tools"}) {
            slices().matching("dev.gpuseg." + module + ".(*)..").should().beFreeOfCycles().check(classes);
        }
    }
}
