/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import org.junit.jupiter.api.Test;

/** What the module may use, and that nothing points back to it. */
class ArchitectureTest {
    private static final JavaClasses CLASSES = new ClassFileImporter()
        .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS).importPackages("dev.gpuseg");

    @Test
    void shouldLetNothingElseKnowTheFleetOrSpark() {
        assertTrue(CLASSES.contain("dev.gpuseg.tools.cli.Gpuseg") && CLASSES.contain("dev.gpuseg.fleet.cli.Fleet"));
        noClasses().that().resideInAPackage("dev.gpuseg..").and().resideOutsideOfPackage("dev.gpuseg.fleet..").should()
            .dependOnClassesThat().resideInAnyPackage("dev.gpuseg.fleet..", "org.apache.spark..",
                "org.apache.parquet..", "org.apache.hadoop..", "scala..").check(CLASSES);
    }

    @Test
    void shouldUseTheReaderOfRecordingsAndTheOptionsOfSweepsButNoPartOfTheDaemon() {
        noClasses().that().resideInAPackage("dev.gpuseg.fleet..").should().dependOnClassesThat().resideInAnyPackage(
            "dev.gpuseg.daemon..", "dev.gpuseg.mechanisms..", "net.openhft..", "com.sun.jna..").check(CLASSES);
        noClasses().that().resideInAPackage("dev.gpuseg.fleet.recordings..").or()
            .resideInAPackage("dev.gpuseg.fleet.make..").should().dependOnClassesThat()
            .resideInAnyPackage("dev.gpuseg.tools.cli..", "picocli..").check(CLASSES);
    }

    @Test
    void shouldHaveNoCyclesBetweenPackages() {
        slices().matching("dev.gpuseg.fleet.(*)..").should().beFreeOfCycles().check(CLASSES);
    }
}
