/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What of a forwarder is changed while it runs. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "forwarder.h"
#include "forwarder_steps.h"
#include "xdp/opener.h"

void forwarder_free_params(struct params *params)
{
	while (params) {
		struct params *before = params->before;

		free(params);
		params = before;
	}
}

/* The kernel's side of it, for every socket. Returns 0, or -errno after a message. */
static int set_busy_poll(const struct forwarder *forwarder, bool on)
{
	for (unsigned i = 0; i < forwarder->workers; i++) {
		for (unsigned j = 0; j < forwarder->ports; j++) {
			const struct lane *lane = forwarder_lane(forwarder, i, j);
			const struct netdev *netdev = &forwarder->port[j].netdev;
			int err;

			if (!lane->made)
				continue;
			if (on)
				err = opener_busy_poll(lane->xsk.fd, netdev->name, netdev->ifindex,
						       forwarder->worker[i]->number,
						       forwarder->conf->batch);
			else
				err = xsk_no_busy_poll(&lane->xsk);
			if (err)
				return err;
		}
	}
	return 0;
}

/* How long a worker may take to come to the end of a pass: one that is off its CPU, tens of ms. What it
 * still uses is kept until then in any case. */
#define PARAMS_WAIT_NS NSEC_PER_SEC

static void hand_out_params(struct forwarder *forwarder, const struct worker_params *wanted)
{
	struct params *params = calloc(1, sizeof(*params));
	uint64_t deadline_ns = clock_now_ns() + PARAMS_WAIT_NS;
	bool taken = true;

	if (!params) {
		log_error(
			"forward %s: no memory for other parameters; it goes on with those it has",
			forwarder->conf->name);
		return;
	}
	*params = (struct params){ *wanted, forwarder->params };
	forwarder->params = params;
	for (unsigned i = 0; i < forwarder->workers; i++)
		worker_set_params(forwarder->worker[i], &params->worker);
	for (unsigned i = 0; i < forwarder->workers; i++)
		taken = !worker_await(forwarder->worker[i], deadline_ns) && taken;
	if (!taken)
		return;
	forwarder_free_params(params->before);
	params->before = NULL;
}

static void apply_params(struct forwarder *forwarder, const struct conf_forward *before)
{
	const struct conf_forward *conf = forwarder->conf;
	struct worker_params wanted = {
		.batch = conf->batch,
		.poll = conf->poll,
		.busy_poll = conf->busy_poll,
	};

	if (before->batch == conf->batch && before->poll == conf->poll &&
	    before->busy_poll == conf->busy_poll)
		return;
	if (before->busy_poll != conf->busy_poll && set_busy_poll(forwarder, conf->busy_poll))
		wanted.busy_poll = before->busy_poll;
	hand_out_params(forwarder, &wanted);
}

void forwarder_apply(struct forwarder *forwarder, const struct plan_forward *plan)
{
	const struct plan_forward *before = forwarder->plan;

	forwarder->plan = plan;
	forwarder->conf = plan->conf;
	for (unsigned i = 0; i < forwarder->ports; i++) {
		struct port *port = &forwarder->port[i];

		port->conf = plan->port[i].conf;
		(void)forwarder_set_promiscuous(port, forwarder_wants_promiscuous(forwarder, port));
	}
	apply_params(forwarder, before->conf);
	for (unsigned i = 0; i < forwarder->workers; i++) {
		int err = worker_move(forwarder->worker[i], plan->worker[i].cpu);

		if (err)
			log_error("forward %s: worker %u stays on CPU %u: " ERR_FORMAT,
				  forwarder->conf->name, i, forwarder->worker[i]->cpu,
				  ERR_ARGS(err));
	}
}
