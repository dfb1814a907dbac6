/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_java.h - prints the Java view of C headers: constants, and offset and size of each member of their structures.
 * A generator is a program that lists them: gen_abi.c for the library's interface with the daemon,
 * rt-scheduler/native/tools/gen_layouts.c for all other layouts that C and Java share.
 *
 * Offsets and sizes come from the compiler (offsetof, sizeof). The generator checks that its lists are complete: the
 * members listed for a structure must fill it without a gap, and every GPUSEG_ constant and every structure in the text
 * of the headers must have been printed, or be named as C's alone. Otherwise it says what is missing and exits 1.
 */
#ifndef GPUSEG_GEN_JAVA_H
#define GPUSEG_GEN_JAVA_H

#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct member {
	const char *name;
	size_t offset;
	size_t size;
};

struct structure {
	const char *name; /* as in the header */
	const char *java;
	size_t size;
	const struct member *members;
	size_t count;
};

enum form { FORM_INT, FORM_HEX, FORM_WORD, FORM_TEXT };

struct constant {
	const char *name; /* NULL: `text` is a comment line */
	enum form form;
	long long value;
	const char *text;
};

struct java_class {
	const char *package;
	const char *name;
	const char *comment; /* lines of its Javadoc */
	const struct constant *constants;
	size_t constant_count;
	const struct structure *structures;
	size_t structure_count;
	const char *const *not_in_java; /* constants and structures that C alone uses */
	size_t not_in_java_count;
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
/* clang-format off */
#define M(s, m) {#m, offsetof(struct s, m), sizeof(((struct s *)0)->m)}
#define S(s, java) \
	{"gpuseg_" #s, java, sizeof(struct gpuseg_##s), s##_members, sizeof(s##_members) / sizeof(struct member)}
#define I(c) {#c, FORM_INT, (long long)(c), NULL}
#define H(c) {#c, FORM_HEX, (long long)(c), NULL}
#define W(c) {#c, FORM_WORD, (long long)(c), NULL} /* 32 bits that Java keeps in an int, which may be negative */
#define T(c) {#c, FORM_TEXT, 0, c}
#define GROUP(text) {NULL, FORM_INT, 0, text}
/* clang-format on */

static int failures;

static void print_upper(const char *s)
{
	for (; *s; s++)
		putchar(toupper((unsigned char)*s));
}

static void print_constants(const struct java_class *class)
{
	for (size_t i = 0; i < class->constant_count; i++) {
		const struct constant *c = &class->constants[i];

		if (!c->name) {
			printf("%s    // %s\n", i ? "\n" : "", c->text);
			continue;
		}
		const char *name = c->name + strlen("GPUSEG_");
		if (c->form == FORM_TEXT)
			printf("    public static final String %s = \"%s\";\n", name, c->text);
		else if (c->form == FORM_WORD)
			printf("    public static final int %s = 0x%08x;\n", name, (unsigned)c->value);
		else if (c->form == FORM_HEX && c->value > INT32_MAX)
			printf("    public static final long %s = 0x%llxL;\n", name, c->value);
		else if (c->value < INT32_MIN || c->value > INT32_MAX)
			printf("    public static final long %s = %lldL;\n", name, c->value);
		else if (c->form == FORM_HEX)
			printf("    public static final int %s = 0x%08llx;\n", name, c->value);
		else
			printf("    public static final int %s = %lld;\n", name, c->value);
	}
}

static void print_structure(const struct structure *s)
{
	size_t end = 0;

	printf("\n    /** Offsets of struct {@code %s}. */\n", s->name);
	printf("    public static final class %s {\n", s->java);
	printf("        public static final int SIZE = %zu;\n", s->size);
	for (size_t i = 0; i < s->count; i++) {
		const struct member *m = &s->members[i];

		if (m->offset != end) {
			fprintf(stderr,
				"gen_java: struct %s: bytes %zu..%zu before %s belong to no listed member; add it\n",
				s->name, end, m->offset, m->name);
			failures++;
		}
		end = m->offset + m->size;
		printf("        public static final int ");
		print_upper(m->name);
		printf("_OFFSET = %zu;\n", m->offset);
		printf("        public static final int ");
		print_upper(m->name);
		printf("_BYTES = %zu;\n", m->size);
	}
	if (end != s->size) {
		fprintf(stderr, "gen_java: struct %s: bytes %zu..%zu belong to no listed member; add it\n", s->name,
			end, s->size);
		failures++;
	}
	printf("\n        private %s() {\n        }\n    }\n", s->java);
}

static int is_name(const char *known, const char *name, size_t length)
{
	return known && strlen(known) == length && !strncmp(known, name, length);
}

static int known(const struct java_class *c, const char *name, size_t length)
{
	int found = 0;

	for (size_t i = 0; i < c->not_in_java_count; i++)
		found |= is_name(c->not_in_java[i], name, length);
	for (size_t i = 0; i < c->constant_count; i++)
		found |= is_name(c->constants[i].name, name, length);
	for (size_t i = 0; i < c->structure_count; i++)
		found |= is_name(c->structures[i].name, name, length);
	return found;
}

static size_t word(const char *s)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || s[n] == '_')
		n++;
	return n;
}

/* Every GPUSEG_X and every `struct x` outside comments must be known. */
static void check_text(const struct java_class *class, const char *path)
{
	static char text[1 << 18];
	FILE *f = fopen(path, "r");

	if (!f) {
		perror(path);
		exit(1);
	}
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	int whole = feof(f) || n < sizeof(text) - 1;
	fclose(f);
	if (!whole) {
		fprintf(stderr, "gen_java: %s is longer than %zu bytes; enlarge `text`\n", path, sizeof(text) - 1);
		exit(1);
	}
	text[n] = '\0';
	for (const char *p = text; *p;) {
		if (p[0] == '/' && p[1] == '*') {
			const char *close = strstr(p + 2, "*/");

			p = close ? close + 2 : p + strlen(p);
			continue;
		}
		size_t len = word(p);
		if (!len) {
			p++;
			continue;
		}
		if (!strncmp(p, "GPUSEG_", 7) && !known(class, p, len)) {
			fprintf(stderr, "gen_java: constant %.*s of %s is not listed; add it\n", (int)len, p, path);
			failures++;
		}
		if (len == 6 && !strncmp(p, "struct", 6) && p[6] == ' ' && !known(class, p + 7, word(p + 7))) {
			fprintf(stderr, "gen_java: struct %.*s of %s is not listed; add it\n", (int)word(p + 7), p + 7,
				path);
			failures++;
		}
		p += len;
	}
}

static int gen_java(const struct java_class *class, int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: %s HEADER... > %s.java\n", argv[0], class->name);
		return 2;
	}
	for (int i = 1; i < argc; i++)
		check_text(class, argv[i]);
	printf("/* SPDX-License-Identifier: Apache-2.0 */\n"
	       "package %s;\n\n"
	       "/**\n"
	       "%s"
	       " */\n"
	       "public final class %s {\n",
	       class->package, class->comment, class->name);
	print_constants(class);
	for (size_t i = 0; i < class->structure_count; i++)
		print_structure(&class->structures[i]);
	printf("\n    private %s() {\n    }\n}\n", class->name);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "gen_java: cannot write %s.java\n", class->name);
		return 1;
	}
	return failures ? 1 : 0;
}

#endif
