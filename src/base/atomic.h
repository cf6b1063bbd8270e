/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All memory that two threads, or a thread and the kernel, share is accessed through these.
 * Fields stay plain integers (pahole cannot read _Atomic). Every use carries a comment that names
 * the access it pairs with, except where both sides are relaxed.
 */
#pragma once

#define load_acquire(p)	    __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define load_relaxed(p)	    __atomic_load_n((p), __ATOMIC_RELAXED)
#define store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

#define fence_acquire() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define fence_release() __atomic_thread_fence(__ATOMIC_RELEASE)
/* Between a store and a load of another word, for two threads that each store and then look. */
#define fence_full() __atomic_thread_fence(__ATOMIC_SEQ_CST)

/* Tells the core that this is a spin-wait: it frees resources for the sibling hyper-thread and
 * leaves the loop without a memory-order flush. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}
