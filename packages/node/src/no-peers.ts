import type { Peers } from '@transitd/cluster';
import type { HeartbeatTimes } from '@transitd/health';
import { notActive } from './read-eligibility.ts';
import type { ServiceLoader } from './service-loader.ts';
import { unsentHeartbeats } from './status.ts';

const refused = (): Promise<never> => Promise.reject(notActive());

/** The peers of a node without `cluster_addr`, which no other node can reach: there are none. */
export class NoPeers implements Peers {
  readonly membershipList = { members: [], member: () => undefined };
  readonly identity = undefined;
  readonly activeMember = undefined;
  readonly heartbeats: Peers['heartbeats'];
  readonly awaitedUntilMs = Number.NEGATIVE_INFINITY;
  readonly standbys = { confirmed: async () => undefined, report: () => undefined };
  readonly canForward = false;
  readonly forwarder = { forward: refused };
  readonly calls = { report: refused, usage: refused, recordUsage: refused };
  readonly canaryUtcMs = undefined;

  constructor(intervalMs: number, services: Pick<ServiceLoader, 'services'>) {
    this.heartbeats = {
      appliedSentMs: () => undefined,
      // Without the lead, the node soon reports that it is cut off; sealed, it counts from its start.
      get times(): HeartbeatTimes {
        return unsentHeartbeats(intervalMs, services.services?.sinceMs ?? 0);
      },
    };
  }
}
