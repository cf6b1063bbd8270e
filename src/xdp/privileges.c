/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/privileges.h"

#include <cap-ng.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"

bool privileges_have(unsigned capability)
{
	capng_get_caps_process();
	return capng_have_capability(CAPNG_EFFECTIVE, capability);
}

/* What a program that is executed could ever get. Without CAP_SETPCAP no_new_privs does the same job. */
static void bound(uint64_t kept)
{
	if (!privileges_have(CAP_SETPCAP))
		return;
	/* Up to the last that this kernel knows. */
	for (unsigned i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++) {
		if (!(kept & CAPABILITY(i)))
			(void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	}
}

static int keep(uint64_t kept)
{
	uint64_t had = 0;

	capng_get_caps_process();
	for (unsigned i = 0; i <= CAP_LAST_CAP; i++) {
		if (kept & CAPABILITY(i) && capng_have_capability(CAPNG_EFFECTIVE, i))
			had |= CAPABILITY(i);
	}
	capng_clear(CAPNG_SELECT_CAPS);
	for (unsigned i = 0; i <= CAP_LAST_CAP; i++) {
		if (had & CAPABILITY(i))
			(void)capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, i);
	}
	/* None is inheritable any more, so none is ambient. */
	if (!capng_apply(CAPNG_SELECT_CAPS))
		return 0;
	log_error("capabilities cannot be dropped: " ERR_FORMAT
		  "; --keep-privileges goes on without",
		  ERR_ARGS(errno));
	return -EPERM;
}

int privileges_keep(uint64_t kept)
{
	int err;

	bound(kept);
	err = keep(kept);
	if (err)
		return err;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
		err = -errno;
		log_error("no_new_privs cannot be set: " ERR_FORMAT
			  "; --keep-privileges goes on without",
			  ERR_ARGS(err));
	}
	return err;
}

/* Room for a line of the user database: the library's own suggestion is 1 KiB. */
#define ENTRY_BYTES 16384

int privileges_find_user(const char *name, const char *otherwise, struct privileges_user *user)
{
	char text[ENTRY_BYTES];
	struct passwd entry, *found = NULL;
	bool asked = name[0];
	int err;

	*user = (struct privileges_user){ .uid = geteuid(), .gid = getegid() };
	if (!asked && (!otherwise || user->uid))
		return 0;
	if (!asked)
		name = otherwise;
	err = getpwnam_r(name, &entry, text, sizeof(text), &found);
	if (!found && !asked)
		return 0;
	if (!found) {
		err = err ? -err : -ENOENT;
		log_error("user %s: %s: " ERR_FORMAT
			  "; `useradd --system %s` makes one, the key or option user names another",
			  name, err == -ENOENT ? "there is none" : "cannot be looked up",
			  ERR_ARGS(err), name);
		return err;
	}
	snprintf(user->name, sizeof(user->name), "%s", name);
	user->other = entry.pw_uid != user->uid;
	user->uid = entry.pw_uid;
	user->gid = entry.pw_gid;
	return 0;
}

/* What the change of user took out of effect is still permitted. */
static int back_into_effect(void)
{
	capng_get_caps_process();
	for (unsigned i = 0; i <= CAP_LAST_CAP; i++) {
		if (capng_have_capability(CAPNG_PERMITTED, i))
			(void)capng_update(CAPNG_ADD, CAPNG_EFFECTIVE, i);
	}
	return capng_apply(CAPNG_SELECT_CAPS) ? -EPERM : 0;
}

int privileges_become(const struct privileges_user *user)
{
	int err = 0;

	if (!user->other)
		return 0;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) || initgroups(user->name, user->gid) ||
	    setresgid(user->gid, user->gid, user->gid) ||
	    setresuid(user->uid, user->uid, user->uid))
		err = -errno;
	if (!err)
		err = back_into_effect();
	if (err)
		log_error("user %s: this process cannot run as another user: " ERR_FORMAT
			  "; start it as root, which takes CAP_SETUID and CAP_SETGID, or as that "
			  "user (in a systemd unit User=%s)",
			  user->name, ERR_ARGS(err), user->name);
	return err;
}
