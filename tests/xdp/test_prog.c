/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/xdp/prog.c"

#include "unit.h"

static void print(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)libbpf_print(LIBBPF_WARN, format, args);
	va_end(args);
}

/* As libbpf 1.1 has them. The first warning names an errno only, and EACCES was taken for a sandbox's. */
static void what_the_verifier_says_is_told(void **state)
{
	(void)state;
	libbpf_reason[0] = verifier_reason[0] = '\0';
	print("prog '%s': BPF program load failed: %s\n", "millrace", "Permission denied");
	assert_string_equal(verifier_reason, "");
	print("prog '%s': -- BEGIN PROG LOAD LOG --\n%s-- END PROG LOAD LOG --\n", "millrace",
	      "43: (61) r1 = *(u32 *)(r10 -56)\n44: (63) *(u32 *)(r10 -20) = r1\n"
	      "attempt to corrupt spilled pointer on stack\n"
	      "processed 81 insns (limit 1000000) max_states_per_insn 0\n");
	assert_string_equal(verifier_reason, "attempt to corrupt spilled pointer on stack");
	assert_string_equal(libbpf_reason,
			    "prog 'millrace': BPF program load failed: Permission denied");
}

static void a_log_of_nothing_is_no_reason(void **state)
{
	(void)state;
	verifier_reason[0] = '\0';
	print("prog '%s': -- BEGIN PROG LOAD LOG --\n%s-- END PROG LOAD LOG --\n", "millrace", "");
	assert_string_equal(verifier_reason, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_verifier_says_is_told),
		cmocka_unit_test(a_log_of_nothing_is_no_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
