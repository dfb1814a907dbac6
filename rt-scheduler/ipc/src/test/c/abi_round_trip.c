/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi_round_trip write FILE   writes one record of every kind with extreme values, then a slot and a journal event
 * abi_round_trip check FILE   exits 1 and names the field if FILE does not hold the same, written by another program
 *
 * The values: record of kind k has flags 7, task_id 2^32-k, seq 2^64-k, ticket 2^63+k, time_ns INT64_MIN+k,
 * release_ns INT64_MAX-k, arg_ns -k, tid 2^32-1-k,
 * sample 2^64-1-k, reserved 0.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuseg_abi.h"

#define KINDS 6

struct content {
	struct gpuseg_record records[KINDS];
	struct gpuseg_slot slot;
	struct gpuseg_event event;
};

static void fill(struct content *c)
{
	memset(c, 0, sizeof(*c));
	for (int k = 1; k <= KINDS; k++) {
		c->records[k - 1] = (struct gpuseg_record){
			.kind = (uint16_t)k,
			.flags = GPUSEG_FLAGS_KNOWN,
			.task_id = UINT32_MAX - (uint32_t)k + 1,
			.seq = UINT64_MAX - (uint64_t)k + 1,
			.ticket = (1ull << 63) + (uint64_t)k,
			.time_ns = INT64_MIN + k,
			.release_ns = INT64_MAX - k,
			.arg_ns = -k,
			.tid = UINT32_MAX - (uint32_t)k,
			.sample = UINT64_MAX - (uint64_t)k,
		};
	}
	c->slot = (struct gpuseg_slot){.grant = UINT64_MAX,
				       .pregrant = 1,
				       .state = GPUSEG_SEGMENT_PREEMPTED,
				       .task_id = UINT32_MAX,
				       .gpu = GPUSEG_GPUS_MAX,
				       .preemptions = UINT64_MAX - 1,
				       .overruns = UINT64_MAX - 2,
				       .misses = UINT64_MAX - 3,
				       .waiting = UINT32_MAX - 1,
				       .ticket = UINT64_MAX - 4};
	c->event = (struct gpuseg_event){.seq = UINT64_MAX,
					 .time_ns = INT64_MAX,
					 .kind = UINT16_MAX,
					 .gpu = UINT8_MAX,
					 .flags = UINT8_MAX - 1,
					 .task_id = UINT32_MAX,
					 .ticket = UINT64_MAX - 1,
					 .context_id = UINT32_MAX - 1,
					 .client_id = UINT32_MAX - 2,
					 .arg0 = INT64_MIN,
					 .arg1 = INT64_MAX,
					 .arg2 = -1};
}

int main(int argc, char **argv)
{
	static struct content expected, found;
	FILE *f;

	if (argc != 3 || (strcmp(argv[1], "write") && strcmp(argv[1], "check"))) {
		fprintf(stderr, "usage: abi_round_trip write|check FILE\n");
		return 2;
	}
	fill(&expected);
	f = fopen(argv[2], argv[1][0] == 'w' ? "wb" : "rb");
	if (!f) {
		perror(argv[2]);
		return 1;
	}
	if (argv[1][0] == 'w') {
		size_t n = fwrite(&expected, sizeof(expected), 1, f);

		return fclose(f) || n != 1;
	}
	if (fread(&found, sizeof(found), 1, f) != 1 || fgetc(f) != EOF) {
		fprintf(stderr, "%s does not have %zu bytes\n", argv[2], sizeof(found));
		return 1;
	}
	fclose(f);
	for (size_t i = 0; i < sizeof(found); i++) {
		if (((const unsigned char *)&found)[i] != ((const unsigned char *)&expected)[i]) {
			fprintf(stderr, "byte %zu is %02x instead of %02x\n", i, ((const unsigned char *)&found)[i],
				((const unsigned char *)&expected)[i]);
			return 1;
		}
	}
	return 0;
}
