/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From one configuration to another: which forwards end, begin, are changed or run on, and in what order. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "fleet.h"
#include "plan/change.h"
#include "xdp/opener.h"

/* What becomes of one forward of the new plan. */
struct step {
	struct plan_forward *plan;
	enum plan_change change;
	struct forwarder *before;	  /* of the same name; NULL: none */
	struct plan_forward *before_plan; /* its plan, to go back to; NULL: none */
	struct forwarder *after;	  /* that runs from now on; NULL: not yet */
	bool begun;			  /* its ports were changed, or it was tried */
};

struct change {
	struct fleet *fleet;
	unsigned steps;
	struct step *step;
};

static struct forwarder *forwarder_of(const struct fleet *fleet, const char *name)
{
	for (unsigned i = 0; i < fleet->forwards; i++) {
		if (!strcmp(fleet->forward[i]->conf->name, name))
			return fleet->forward[i];
	}
	return NULL;
}

static struct step step_of(const struct fleet *fleet, struct plan_forward *plan)
{
	struct step step = {
		.plan = plan,
		.change = PLAN_CHANGE_REBUILD,
		.before = forwarder_of(fleet, plan->conf->name),
	};

	if (step.before) {
		step.before_plan = step.before->plan;
		step.change = plan_compare(step.before_plan, plan);
	}
	return step;
}

/* True if a port that comes is now one of another forward whose ports change: that one must let go of it
 * first, and it is not known which of the two is changed first. */
static bool crosses(const struct change *change, const struct step *step)
{
	for (unsigned i = 0; i < change->steps; i++) {
		const struct step *other = &change->step[i];

		if (other != step && other->change == PLAN_CHANGE_PORTS &&
		    plan_shares_device(other->before_plan, step->plan))
			return true;
	}
	return false;
}

/* What each forward's fate is. A forward that runs on keeps the memory it has. */
static void take_steps(struct change *change, struct plan *plan)
{
	for (unsigned i = 0; i < change->steps; i++)
		change->step[i] = step_of(change->fleet, &plan->forward[i]);
	for (unsigned i = 0; i < change->steps; i++) {
		struct step *step = &change->step[i];

		if (step->change == PLAN_CHANGE_PORTS && crosses(change, step))
			step->change = PLAN_CHANGE_REBUILD;
		if (step->change == PLAN_CHANGE_REBUILD)
			continue;
		step->after = step->before;
		plan_keep_memory(&plan->forward[i], step->before_plan);
	}
}

/* True if the running forwarder is not to run on. */
static bool ends(const struct change *change, const struct forwarder *forwarder)
{
	for (unsigned i = 0; i < change->steps; i++) {
		if (change->step[i].after == forwarder)
			return false;
	}
	return true;
}

/* True if the new forward needs a device that is still another's. */
static bool must_wait(const struct change *change, const struct step *step)
{
	const struct fleet *fleet = change->fleet;

	for (unsigned i = 0; i < fleet->forwards; i++) {
		if (plan_shares_device(fleet->forward[i]->plan, step->plan))
			return true;
	}
	return false;
}

static void retire(struct forwarder *forwarder)
{
	forwarder_stop(forwarder);
	(void)forwarder_close_lanes(forwarder);
	forwarder_restore(forwarder);
}

/* One that did not come to run. */
static void discard(struct forwarder *forwarder)
{
	if (!forwarder)
		return;
	retire(forwarder);
	forwarder_free(forwarder);
}

/* One that ran. */
static void lower(struct forwarder *forwarder)
{
	retire(forwarder);
	log_info("forward %s: ended; %llu frames reclaimed", forwarder->conf->name,
		 (unsigned long long)forwarder_reclaimed(forwarder));
	forwarder_free(forwarder);
}

/* Makes and starts one. Returns 0 with *result, or -errno after a message. */
static int raise_forward(const struct fleet *fleet, struct plan_forward *plan,
			 struct forwarder **result)
{
	struct forwarder *forwarder = forwarder_new(plan, fleet->done_fd);
	int err = forwarder ? forwarder_open(forwarder) : -ENOMEM;

	if (!err)
		err = forwarder_start(forwarder);
	if (err)
		discard(forwarder);
	else
		*result = forwarder;
	return err;
}

/* Raises those that need no device of one that runs, or, `waiting`, the others. */
static int raise_steps(struct change *change, bool waiting)
{
	int err = 0;

	for (unsigned i = 0; !err && i < change->steps; i++) {
		struct step *step = &change->step[i];

		if (!step->after && (waiting || !must_wait(change, step)))
			err = raise_forward(change->fleet, step->plan, &step->after);
	}
	return err;
}

static void lower_steps(struct change *change)
{
	for (unsigned i = 0; i < change->steps; i++) {
		struct step *step = &change->step[i];

		if (step->change != PLAN_CHANGE_REBUILD)
			continue;
		if (step->after)
			lower(step->after);
		step->after = NULL;
	}
}

/* Ends what is not to run on; its plan stays, for it to be raised again. */
static void lower_ending(const struct change *change, struct plan_forward **ended)
{
	struct fleet *fleet = change->fleet;

	for (unsigned i = 0; i < fleet->forwards; i++) {
		if (!ends(change, fleet->forward[i]))
			continue;
		ended[i] = fleet->forward[i]->plan;
		lower(fleet->forward[i]);
		fleet->forward[i] = NULL;
	}
}

static void say_gone(const struct plan_forward *plan)
{
	log_error("forward %s: cannot be started again either, and is not running any more; mend "
		  "what is wrong and `millracectl reload`",
		  plan->conf->name);
}

/* Back to what ran before, as far as that can be had. */
static void raise_ended(struct fleet *fleet, struct plan_forward *const *ended)
{
	unsigned forwards = 0;

	for (unsigned i = 0; i < fleet->forwards; i++) {
		struct forwarder *forwarder = fleet->forward[i];

		int err = ended[i] ? raise_forward(fleet, ended[i], &forwarder) : 0;

		if (err && err != -ECANCELED)
			say_gone(ended[i]);
		if (forwarder)
			fleet->forward[forwards++] = forwarder;
	}
	fleet->forwards = forwards;
}

/* Ports come and go in forwards that run on. */
static int change_ports(struct change *change)
{
	int err = 0;

	for (unsigned i = 0; !err && i < change->steps; i++) {
		struct step *step = &change->step[i];

		if (step->change != PLAN_CHANGE_PORTS)
			continue;
		step->begun = true;
		err = forwarder_change_ports(step->before, step->plan);
	}
	return err;
}

/* And back again; a forward for which that fails ends. */
static void change_ports_back(struct change *change)
{
	struct fleet *fleet = change->fleet;

	for (unsigned i = 0; i < change->steps; i++) {
		struct step *step = &change->step[i];

		if (!step->begun || !forwarder_change_ports(step->before, step->before_plan))
			continue;
		say_gone(step->before_plan);
		for (unsigned j = 0; j < fleet->forwards; j++) {
			if (fleet->forward[j] == step->before)
				fleet->forward[j] = NULL;
		}
		lower(step->before);
	}
}

/* What became of it; the ports and forwards that ended have said so themselves. */
static void say_done(const struct step *step)
{
	static const char *const done[] = {
		[PLAN_CHANGE_NONE] = "unchanged",
		[PLAN_CHANGE_PARAMS] = "runs on with other parameters",
		[PLAN_CHANGE_PORTS] = "runs on with other ports",
		[PLAN_CHANGE_REBUILD] = "started anew",
	};

	log_info("forward %s: %s", step->plan->conf->name,
		 step->before_plan ? done[step->change] : "started");
}

/* The new ones in the place of the old. */
static void settle(struct change *change, struct forwarder **forward)
{
	struct fleet *fleet = change->fleet;

	for (unsigned i = 0; i < change->steps; i++) {
		const struct step *step = &change->step[i];

		forward[i] = step->after;
		if (step->change != PLAN_CHANGE_REBUILD)
			forwarder_apply(step->after, step->plan);
		say_done(step);
	}
	free(fleet->forward);
	fleet->forward = forward;
	fleet->forwards = change->steps;
}

/* True if something is still to be opened. */
static bool waits(const struct change *change)
{
	for (unsigned i = 0; i < change->steps; i++) {
		if (!change->step[i].after || change->step[i].change == PLAN_CHANGE_PORTS)
			return true;
	}
	return false;
}

static int carry_out(struct change *change, struct forwarder **forward, struct plan_forward **ended)
{
	int err;

	/* First what disturbs nothing: if that fails, nothing has happened. */
	err = raise_steps(change, false);
	/* Nothing is ended for what cannot be opened, nor could it be started again. */
	if (!err && waits(change))
		err = opener_check();
	if (err) {
		lower_steps(change);
		return err;
	}
	lower_ending(change, ended);
	err = change_ports(change);
	if (!err)
		err = raise_steps(change, true);
	if (err) {
		lower_steps(change);
		change_ports_back(change);
		raise_ended(change->fleet, ended);
		return err;
	}
	settle(change, forward);
	return 0;
}

int fleet_change(struct fleet *fleet, const struct conf *conf, struct plan *plan)
{
	struct change change = {
		.fleet = fleet,
		.steps = plan->forwards,
		.step = calloc(plan->forwards, sizeof(*change.step)),
	};
	struct forwarder **forward = calloc(plan->forwards, sizeof(struct forwarder *));
	struct plan_forward **ended = calloc(fleet->forwards + 1U, sizeof(*ended));
	int err = 0;

	if (!change.step || !forward || !ended) {
		log_error("out of memory");
		err = -ENOMEM;
	}
	if (!err) {
		take_steps(&change, plan);
		err = carry_out(&change, forward, ended);
	}
	if (err) {
		free(forward);
	} else {
		fleet->conf = conf;
		fleet->plan = plan;
	}
	free(change.step);
	free(ended);
	return err;
}
