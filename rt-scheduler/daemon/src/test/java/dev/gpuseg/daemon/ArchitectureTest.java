/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.time.Instant;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The arrows of the design: analysis to core, daemon to both, and who may use which library. */
class ArchitectureTest {
    private static JavaClasses classes;

    @BeforeAll
    static void importClasses() {
        classes = new ClassFileImporter().withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
            .importPackages("dev.gpuseg");
        assertTrue(classes.contain("dev.gpuseg.core.SegmentScheduler"), "core must be on the class path");
        assertTrue(classes.contain("dev.gpuseg.daemon.agent.Daemon"), "the daemon must be on the class path");
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
    void shouldKeepTheAnalysisFromKnowingTheDaemonOrItsLibraries() {
        noClasses().that().resideInAPackage("dev.gpuseg.analysis..").should().dependOnClassesThat()
            .resideInAnyPackage("dev.gpuseg.daemon..", "com.sun.jna..", "net.openhft..").allowEmptyShould(true)
            .check(classes);
    }

    @Test
    void shouldLetOnlyMechanismAndPlatformUseJna() {
        noClasses().that().resideOutsideOfPackages("dev.gpuseg.daemon.mechanism..", "dev.gpuseg.daemon.platform..")
            .should().dependOnClassesThat().resideInAPackage("com.sun.jna..").check(classes);
    }

    @Test
    void shouldLetOnlyIpcAndJournalUseChronicle() {
        noClasses().that().resideOutsideOfPackages("dev.gpuseg.daemon.ipc..", "dev.gpuseg.daemon.journal..")
            .should().dependOnClassesThat().resideInAPackage("net.openhft..").check(classes);
    }

    @Test
    void shouldLetOnlyMetricsUseThePrometheusClientAndOnlyTheCommandLineATerminal() {
        noClasses().that().resideOutsideOfPackage("dev.gpuseg.daemon.metrics..").should().dependOnClassesThat()
            .resideInAPackage("io.prometheus..").check(classes);
        noClasses().that().resideOutsideOfPackage("dev.gpuseg.daemon.cli..").should().dependOnClassesThat()
            .resideInAPackage("org.jline..").check(classes);
    }

    @Test
    void shouldLetNobodyDependOnTheCommandLine() {
        noClasses().that().resideOutsideOfPackage("dev.gpuseg.daemon.cli..").should().dependOnClassesThat()
            .resideInAPackage("dev.gpuseg.daemon.cli..").check(classes);
        noClasses().that().resideOutsideOfPackage("dev.gpuseg.daemon.cli..").should().dependOnClassesThat()
            .resideInAPackage("picocli..").check(classes);
    }

    @Test
    void shouldHaveNoCyclesBetweenPackagesOfTheDaemon() {
        slices().matching("dev.gpuseg.daemon.(*)..").should().beFreeOfCycles().check(classes);
    }
}
