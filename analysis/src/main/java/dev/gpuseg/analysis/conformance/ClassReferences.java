/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.conformance;

import dev.gpuseg.core.Policy;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Reads in the class files of a policy which classes they name (JVM specification, section 4.4). This finds mistakes,
 * not malice: code from a jar runs with all rights of the process whatever this says.
 */
final class ClassReferences {
    private static final List<String> FORBIDDEN = List.of("java/lang/System", "java/lang/Thread", "java/lang/Runtime",
        "java/lang/Process", "java/lang/ClassLoader", "java/lang/reflect/", "java/util/Random", "java/util/Timer",
        "java/util/Date", "java/util/Calendar", "java/util/UUID", "java/util/Scanner", "java/util/SplittableRandom",
        "java/util/concurrent/", "java/util/logging/", "java/util/zip/", "java/util/jar/");
    private static final List<String> ALLOWED = List.of("java/lang/", "java/util/", "dev/gpuseg/core/");

    private static final int UTF8 = 1;
    private static final int INTEGER = 3;
    private static final int FLOAT = 4;
    private static final int LONG = 5;
    private static final int DOUBLE = 6;
    private static final int CLASS = 7;
    private static final int STRING = 8;
    private static final int METHOD_HANDLE = 15;
    private static final int METHOD_TYPE = 16;
    private static final int MODULE = 19;
    private static final int PACKAGE = 20;

    private ClassReferences() {
    }

    static void check(final Policy policy, final Findings findings) {
        for (Class<?> c = policy.getClass(); c != null && c != Object.class; c = c.getSuperclass()) {
            for (final Field f : c.getDeclaredFields()) {
                findings.require(Law.STATELESS, Modifier.isFinal(f.getModifiers()),
                    () -> "field " + f.getName() + " of " + f.getDeclaringClass().getName() + " is not final");
            }
        }
        final ClassLoader loader = policy.getClass().getClassLoader();
        final Set<String> seen = new HashSet<>();
        final Deque<String> open = new ArrayDeque<>();
        open.add(policy.getClass().getName().replace('.', '/'));
        while (!open.isEmpty()) {
            final String name = open.remove();
            if (!seen.add(name)) {
                continue;
            }
            try (InputStream in = loader.getResourceAsStream(name + ".class")) {
                if (in == null) {
                    findings.add(Law.EFFECTS, name + " has no class file in its jar");
                    continue;
                }
                for (final String used : classes(new DataInputStream(in))) {
                    if (isForbidden(used)) {
                        findings.add(Law.EFFECTS, "class " + name.replace('/', '.') + " uses "
                            + used.replace('/', '.'));
                    } else if (ALLOWED.stream().noneMatch(used::startsWith)) {
                        if (isOf(loader, used, policy)) {
                            open.add(used);
                        } else {
                            findings.add(Law.EFFECTS, "class " + name.replace('/', '.') + " uses "
                                + used.replace('/', '.'));
                        }
                    }
                }
            } catch (final IOException e) {
                findings.add(Law.EFFECTS, name + ": " + e.getMessage());
            }
        }
    }

    private static boolean isForbidden(final String used) {
        return FORBIDDEN.stream().anyMatch(f -> f.endsWith("/") ? used.startsWith(f)
            : used.equals(f) || used.startsWith(f + "$") || f.equals("java/lang/Process") && used.startsWith(f));
    }

    /** Comes from the same jar as the policy. */
    private static boolean isOf(final ClassLoader loader, final String used, final Policy policy) {
        try {
            final Class<?> c = Class.forName(used.replace('/', '.'), false, loader);
            return c.getClassLoader() == loader && c.getProtectionDomain().getCodeSource() != null
                && c.getProtectionDomain().getCodeSource().equals(
                policy.getClass().getProtectionDomain().getCodeSource());
        } catch (final ClassNotFoundException | LinkageError e) {
            return false;   // it is not in the jar: reported as used
        }
    }

    /** The classes that a class file names; of arrays their element type, and Math.random as a class. */
    private static Set<String> classes(final DataInputStream in) throws IOException {
        in.skipNBytes(8);
        final int count = in.readUnsignedShort();
        final String[] text = new String[count];
        final int[] nameOf = new int[count];
        for (int i = 1; i < count; i++) {
            final int tag = in.readUnsignedByte();
            switch (tag) {
                case UTF8 -> text[i] = in.readUTF();
                case CLASS -> nameOf[i] = in.readUnsignedShort();
                case STRING, METHOD_TYPE, MODULE, PACKAGE -> in.skipNBytes(2);
                case METHOD_HANDLE -> in.skipNBytes(3);
                case LONG, DOUBLE -> {
                    in.skipNBytes(8);
                    i++;   // takes two entries
                }
                case INTEGER, FLOAT -> in.skipNBytes(4);
                default -> in.skipNBytes(4);   // pairs of indices
            }
        }
        final Set<String> used = new HashSet<>();
        for (final int at : nameOf) {
            if (at != 0) {
                final String name = text[at].replaceFirst("^\\[+L?", "").replaceFirst(";$", "");
                if (name.length() > 1) {   // else an array of primitives
                    used.add(name);
                }
            }
        }
        if (used.contains("java/lang/Math") && Arrays.asList(text).contains("random")) {
            used.add("java/util/Random");
        }
        return used;
    }
}
