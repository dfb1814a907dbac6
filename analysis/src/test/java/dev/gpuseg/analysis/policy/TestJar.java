/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.policy;

import dev.gpuseg.core.Policy;
import java.io.IOException;
import java.io.OutputStream;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/** Makes a jar of sources and service files, as a user of the program would. */
public final class TestJar {
    private final Path directory;
    private final List<Path> sources = new ArrayList<>();

    /** Works inside a directory. */
    public TestJar(final Path directory) throws IOException {
        this.directory = directory;
        Files.createDirectories(directory.resolve("classes/META-INF/services"));
    }

    /**
     * The example of the documentation, made as its README says.
     *
     * @param directory to work in
     * @return the jar of policy least-slack
     */
    public static Path leastSlackFirst(final Path directory) throws IOException {
        Path root = Path.of("").toAbsolutePath();
        while (!Files.isDirectory(root.resolve("rt-scheduler/docs/examples"))) {
            root = root.getParent();
        }
        final Path example = root.resolve("rt-scheduler/docs/examples/least-slack-first");
        return new TestJar(directory).source(example.resolve("example/LeastSlackFirst.java"))
            .service(Policy.class,
                Files.readString(example.resolve("META-INF/services/" + Policy.class.getName())).strip())
            .build("least-slack.jar");
    }

    /** Adds a class that has no package. */
    public TestJar source(final String name, final String text) throws IOException {
        sources.add(Files.writeString(directory.resolve(name + ".java"), text));
        return this;
    }

    /** Adds a source file. */
    public TestJar source(final Path file) {
        sources.add(file);
        return this;
    }

    /** Names a provider. */
    public TestJar service(final Class<?> service, final String provider) throws IOException {
        Files.writeString(directory.resolve("classes/META-INF/services/" + service.getName()), provider + "\n");
        return this;
    }

    /** Compiles with the class path of the test and packs. */
    public Path build(final String name) throws IOException {
        final Path classes = directory.resolve("classes");
        if (!sources.isEmpty()) {
            final JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
            final StringWriter messages = new StringWriter();
            try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null)) {
                final boolean ok = compiler.getTask(messages, files, null,
                    List.of("-proc:none", "-Xlint:all", "-Werror", "-d", classes.toString(), "-cp",
                        System.getProperty("java.class.path")), null,
                    files.getJavaFileObjectsFromPaths(sources)).call();
                if (!ok) {
                    throw new AssertionError(messages.toString());
                }
            }
        }
        final Path jar = directory.resolve(name);
        try (OutputStream out = Files.newOutputStream(jar); JarOutputStream zip = new JarOutputStream(out);
            Stream<Path> all = Files.walk(classes)) {
            zip.putNextEntry(new JarEntry("README"));
            zip.write("made by a test".getBytes(StandardCharsets.UTF_8));
            zip.closeEntry();
            for (final Path file : all.filter(Files::isRegularFile).sorted().toList()) {
                zip.putNextEntry(new JarEntry(classes.relativize(file).toString().replace('\\', '/')));
                Files.copy(file, zip);
                zip.closeEntry();
            }
        }
        return jar;
    }
}
