import type { NodeObserver } from '@transitd/process';
import { Counter, type Registry, Summary } from 'prom-client';

export const quantiles = { percentiles: [0.5, 0.9, 0.99], maxAgeSeconds: 600, ageBuckets: 2 };

/** Counters and summaries of what happens in the cluster. Labels are names of nodes. */
export function registerHappenings({
  prefix,
  registers,
}: {
  readonly prefix: string;
  readonly registers: Registry[];
}): NodeObserver {
  const summary = <Label extends string = never>(name: string, help: string, labelNames: Label[] = []): Summary<Label> =>
    new Summary({ name: `${prefix}_${name}`, help, labelNames, registers, ...quantiles });
  const counter = <Label extends string = never>(name: string, help: string, labelNames: Label[] = []): Counter<Label> =>
    new Counter({ name: `${prefix}_${name}`, help, labelNames, registers });

  const applied = counter('raft_apply', 'Transactions of this node that were committed');
  const commitMs = summary('raft_commitTime', 'Milliseconds from proposing a transaction to its effect on this node');
  const roles = {
    leader: counter('raft_state_leader', 'How often this node became leader'),
    follower: counter('raft_state_follower', 'How often this node became follower'),
    candidate: counter('raft_state_candidate', 'How often this node began to campaign'),
  };
  const contactMs = summary('raft_leader_lastContact', 'Milliseconds since the leader heard of a voter, sampled every second');
  const lostMs = summary('core_leadership_lost', 'Milliseconds for which this node had been active when it ceased to be');
  const stepDownMs = summary('core_step_down', 'Milliseconds that a step-down took which an operator asked for');
  const echoMs = summary('ha_rpc_client_echo', 'Milliseconds of an answered echo to the active node', ['peer_id']);
  const echoErrors = counter('ha_rpc_client_echo_errors', 'Echoes that no active node answered', ['peer_id']);
  const forwardMs = summary('ha_rpc_client_forward', 'Milliseconds of a request that the active node answered for this one');
  const forwardErrors = counter('ha_rpc_client_forward_errors', 'Requests that the active node did not answer for this one');
  const listConflicts = counter(
    'raft_membership_list_conflicts',
    'Signed membership lists refused because they contradict what this node knows',
  );

  const barrierMs = {
    get: summary('barrier_get', 'Milliseconds of reading a record through the barrier'),
    put: summary('barrier_put', 'Milliseconds of a transaction that writes records through the barrier'),
    list: summary('barrier_list', 'Milliseconds of reading a page of records through the barrier'),
    delete: summary('barrier_delete', 'Milliseconds of a transaction that only removes records'),
  };

  return {
    barrier: (operation, ms) => barrierMs[operation].observe(ms),
    committed: (ms) => {
      applied.inc();
      commitMs.observe(ms);
    },
    roleChanged: (role) => roles[role].inc(),
    leadershipLost: (ms) => lostMs.observe(ms),
    steppedDown: (ms) => stepDownMs.observe(ms),
    lastContact: (ms) => contactMs.observe(ms),
    echoed: (peer, ms) => echoMs.observe({ peer_id: peer }, ms),
    echoFailed: (peer) => echoErrors.inc({ peer_id: peer }),
    forwarded: (ms) => forwardMs.observe(ms),
    forwardFailed: () => forwardErrors.inc(),
    membershipConflict: () => listConflicts.inc(),
  };
}
