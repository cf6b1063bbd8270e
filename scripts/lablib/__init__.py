# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The host's half of scripts/lab: what it fetches, what it boots, what it reports.

    tables     what can be chosen: kernels, NICs, scenarios      (text -> records, nothing else)
    sources    this machine's apt sources, and others made of them             (text -> text)
    apt        an apt that has nothing but our sources, and keeps nothing on the host
    modules    which kernel modules, in which order
    cache      folders that are either whole or made again
    supplies   the kernels and QEMU: fetched by apt, kept in the cache
    image      the guest's file system, as a cpio archive
    machine    one run of QEMU, from its arguments to its last word
    sabotage   builds that are broken on purpose

The guest's half is tests/lab/guest; scenarios are tests/lab/scenarios, one file each.
"""


class Unavailable(Exception):
    """What the lab needs cannot be had here; the text says what and why, in one line."""
