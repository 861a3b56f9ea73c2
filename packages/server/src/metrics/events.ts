import type { NodeObserver } from '@transitd/process';
import { Counter } from 'prom-client';
import { durationHistogram, type MetricTarget } from './register.ts';

/** Upper bounds in milliseconds for the time of a leader: 1 s, 10 s, 1 min, 10 min, 1 h, 1 d, 30 d. */
const leadershipBoundsMs = [1000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000, 2_592_000_000];

/** Registers the counters and histograms of cluster and barrier events. Labels are names of nodes. */
export function registerEvents({ prefix, registers }: MetricTarget): NodeObserver {
  const duration = <Label extends string = never>(name: string, help: string, labelNames: Label[] = []) =>
    durationHistogram({ name: `${prefix}_${name}`, help, labelNames, registers });
  const counter = <Label extends string = never>(name: string, help: string, labelNames: Label[] = []): Counter<Label> =>
    new Counter({ name: `${prefix}_${name}`, help, labelNames, registers });

  const applied = counter('raft_apply', 'Transactions proposed by this node and committed');
  const commitMs = duration(
    'raft_commit_time',
    'Time from the proposal of a transaction until this node has applied it, in milliseconds',
  );
  const roles = {
    leader: counter('raft_state_leader', 'Number of times this node became leader'),
    follower: counter('raft_state_follower', 'Number of times this node became follower'),
    candidate: counter('raft_state_candidate', 'Number of times this node became candidate'),
  };
  const contactMs = duration(
    'raft_leader_last_contact',
    'Time since the last contact of the leader with a voter, in milliseconds, sampled every second',
  );
  const lostMs = durationHistogram({
    name: `${prefix}_core_leadership_lost`,
    help: 'Time this node was active before it lost leadership, in milliseconds',
    registers,
    buckets: leadershipBoundsMs,
  });
  const stepDownMs = duration('core_step_down', 'Duration of a step-down requested by an operator, in milliseconds');
  const heartbeatMs = duration('ha_rpc_client_echo', 'Round-trip time of a heartbeat to the active node, in milliseconds', [
    'peer_id',
  ]);
  const heartbeatErrors = counter('ha_rpc_client_echo_errors', 'Heartbeats that the active node did not answer', ['peer_id']);
  const forwardMs = duration('ha_rpc_client_forward', 'Duration of a request forwarded to the active node, in milliseconds');
  const forwardErrors = counter('ha_rpc_client_forward_errors', 'Forwarded requests that the active node did not answer');
  const listConflicts = counter(
    'raft_membership_list_conflicts',
    'Signed membership lists refused because they contradict the list of this node',
  );

  const sealMs = {
    encrypt: duration('seal_encrypt_time', 'Duration of an encryption by the provider of the seal, in milliseconds'),
    decrypt: duration('seal_decrypt_time', 'Duration of a decryption by the provider of the seal, in milliseconds'),
    random: duration('seal_random_time', 'Duration of a draw of random bytes from the provider of the seal, in milliseconds'),
  };
  const sealErrors = counter('seal_errors', 'Failed calls of the provider of the seal, by the kind of failure', ['failure']);

  const barrierMs = {
    get: duration('barrier_get', 'Time to read a record through the barrier, in milliseconds'),
    put: duration('barrier_put', 'Time of a transaction that writes records through the barrier, in milliseconds'),
    list: duration('barrier_list', 'Time to read a page of records through the barrier, in milliseconds'),
    delete: duration('barrier_delete', 'Time of a transaction that only deletes records, in milliseconds'),
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
    heartbeatAnswered: (peer, ms) => heartbeatMs.observe({ peer_id: peer }, ms),
    heartbeatFailed: (peer) => heartbeatErrors.inc({ peer_id: peer }),
    forwarded: (ms) => forwardMs.observe(ms),
    forwardFailed: () => forwardErrors.inc(),
    sealCalled: (operation, ms) => sealMs[operation].observe(ms),
    sealFailed: (failure) => sealErrors.inc({ failure }),
    membershipConflict: () => listConflicts.inc(),
  };
}
