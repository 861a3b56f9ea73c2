import type { LogIndex } from '@transitd/raft-core';
import { StoreError } from '@transitd/storage-fsm';
import { type RenewalOptions, renewalHandler, renewPath } from './maintenance/renewal.ts';
import type { ClusterAuthority } from './membership/authority.ts';
import type { MembershipListSync } from './membership/list-sync.ts';
import type { ToldMembers } from './membership/membership-list.ts';
import { ListRefused, type SignedList } from './membership/signed-list.ts';
import type { Storage } from './ports/storage-port.ts';
import type { AppliedIndex } from './standbys/applied-index.ts';
import { type EchoReply, echoNews } from './standbys/echo-wire.ts';
import type { Standbys } from './standbys/standbys.ts';
import { hexOf } from './standbys/state-comparison.ts';
import type { ClusterHandler } from './transport/cluster-listener.ts';

export interface CallParts {
  readonly storage: Storage;
  readonly applied: AppliedIndex;
  readonly standbys: Standbys;
  readonly isActive: () => boolean;
  /** `cluster_heartbeat_interval` of this node. */
  readonly intervalMs: number;
  /** Whom this node knows to be a member for certain; undefined where it is none itself any more. */
  readonly committed: () => ToldMembers | undefined;
  readonly lists: Pick<MembershipListSync, 'held' | 'shown'>;
  /** No leader is heard, so a signed membership list may bring back whom this node's log does not name. */
  readonly isLeaderless: () => boolean;
  readonly renewal: RenewalOptions;
  readonly keepAuthority: (authority: ClusterAuthority) => Promise<void>;
  /** A node says that its records are others than this one's. */
  readonly onDifference: () => void;
}

/** How long a node that is asked to confirm an entry waits for it. */
export const confirmWithinMs = 1000;

/** By which a node shows its signed membership list to one that does not admit it. */
export const listPath = '/cluster/members';

export const authorityCall = '/cluster/authority';

const malformed = { status: 400, json: {} } as const;

/** What this node answers to others on the cluster port, by method and path. */
export function clusterCalls({
  storage,
  applied,
  standbys,
  isActive,
  intervalMs,
  committed,
  lists,
  isLeaderless,
  renewal,
  keepAuthority,
  onDifference,
}: CallParts): Readonly<Record<string, ClusterHandler>> {
  const { driver, machine, snapshots } = storage;
  const leads = (): Promise<boolean> => storage.replica.fresh().then(isActive, () => false);
  const newerList = (than: LogIndex): { readonly list?: SignedList } => {
    const { held } = lists;
    return held !== undefined && held.index > than ? { list: held.signed } : {};
  };
  return {
    /**
     * Under a lease, or after a quorum has confirmed the lead: a leader that was deposed must not keep a standby serving. One that failed to
     * hand over has no lease in that term any more. Whoever asks the wrong node may not know the right one: it is told who belongs.
     * A node that served for longer after an answer than this one waits for would serve what is not in force any more.
     */
    'POST /cluster/echo': async ({ from, certificate, body }) => {
      const news = echoNews.safeParse(jsonIn(body));
      if (!news.success) return malformed;
      if (!isActive() || !(storage.holdsLease() || (await leads())))
        return { status: 503, json: { active: false, committed: committed(), ...newerList(news.data.listIndex) } };
      if (news.data.differs) onDifference();
      if (news.data.intervalMs !== intervalMs) return { status: 409, json: { intervalMs } };
      standbys.heard(from, { ...news.data, certificate });
      const { appliedIndex, digest } = machine.applied;
      const answer: EchoReply = {
        state: { index: appliedIndex, digest: hexOf(digest) },
        commitIndex: driver.status().commitIndex,
        utcMs: Date.now(),
        replication: { performance: 'disabled', disasterRecovery: 'disabled' },
        ...newerList(news.data.listIndex),
      };
      return { status: 200, json: answer };
    },

    'POST /cluster/confirm': async ({ body }) => {
      const { index } = jsonIn(body) as { index?: unknown };
      if (typeof index !== 'number') return malformed;
      await applied.reached(index, confirmWithinMs);
      return { status: 200, json: { appliedIndex: applied.index } };
    },

    [`POST ${renewPath}`]: renewalHandler(renewal),

    /** From a node that this one does not admit, perhaps because it was away while its members were replaced. */
    [`POST ${listPath}`]: async ({ from, certificate, body }) => {
      if (!isLeaderless()) return { status: 409, json: {} };
      try {
        const verdict = await lists.shown(jsonIn(body), { id: from, certificate });
        return { status: verdict === 'take' || verdict === 'known' ? 200 : 403, json: { verdict } };
      } catch (error) {
        if (error instanceof ListRefused) return malformed;
        throw error;
      }
    },

    /** From the node that took a restore under another root key: it alone still knows it. */
    [`POST ${authorityCall}`]: async ({ body }) => {
      const { key, certificate } = jsonIn(body) as { key?: unknown; certificate?: unknown };
      if (typeof key !== 'string' || typeof certificate !== 'string') return malformed;
      if (!isActive()) throw new StoreError('not_leader', 'this node is not the active one');
      await keepAuthority({ key, certificate });
      return { status: 200, json: {} };
    },

    'GET /cluster/snapshot': async ({ from, query }) => {
      const index = Number(query.get('index') ?? Number.NaN);
      return Number.isSafeInteger(index) && index >= 0 ? { stream: snapshots.stream(from, index) } : malformed;
    },
  };
}

/** An object, an empty one for what is none. */
function jsonIn(body: Buffer): object {
  try {
    const json: unknown = JSON.parse(body.toString('utf8'));
    return typeof json === 'object' && json !== null ? json : {};
  } catch {
    return {};
  }
}
