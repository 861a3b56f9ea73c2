import { isDeepStrictEqual } from 'node:util';
import type { SimClock, SimRandom } from '@transitd/raft-sim';
import {
  continues,
  cursorOf,
  type ReplicatedRecord,
  type ReplicatedSnapshot,
  type ReplicationState,
  type ReplicationStep,
} from '@transitd/storage-fsm';
import type { SecondaryProgress } from '../../src/roles/acknowledgement.ts';
import { successionKeyBytes } from '../../src/roles/meeting.ts';
import { isBeforeRestore } from '../../src/roles/promotion.ts';
import { PrimarySession } from '../../src/sessions/primary-session.ts';
import { SecondarySession } from '../../src/sessions/secondary-session.ts';
import type {
  PrimaryCluster,
  Proposed,
  SecondaryCluster,
  SessionEnd,
  SessionLimits,
  Wire,
} from '../../src/sessions/session-ports.ts';
import { snapshotToSend } from '../../src/sessions/state-frames.ts';
import type { Frame } from '../../src/stream/frame.ts';
import { decodeFrame } from '../../src/stream/frame-codec.ts';
import type { Links } from './links.ts';
import { holds } from './oracle.ts';
import { type ActiveNode, keyringPath, keysIn, type Site } from './site.ts';

export const heartbeatMs = 20;
const limits: SessionLimits = {
  ...{ heartbeatMs, silentMsMax: 360, stallMsMax: 300 },
  ...{ frameBytes: 300, framesMax: 4, unsentBytesMax: 2 ** 20 },
};

/** Each site has the state of the set, and so its key. */
const successionKey = Buffer.alloc(successionKeyBytes, 9);

export interface SessionsParts {
  readonly clock: SimClock;
  readonly random: SimRandom;
  readonly links: Links;
  readonly sites: readonly Site[];
  /** Receives the errors that would otherwise end only a session. */
  readonly failures: unknown[];
}

/** One end of a connection: the active node of a site, and its session. */
interface End<Session> {
  readonly site: Site;
  readonly active: ActiveNode;
  session: Session | undefined;
}

/** A connection that the active node of one site has opened to that of another one. */
interface Connection {
  readonly secondary: End<SecondarySession>;
  readonly primary: End<PrimarySession>;
}

/** The connections of all sites: the part that the server does around the sessions. */
export class Sessions {
  readonly #parts: SessionsParts;
  readonly #connections = new Set<Connection>();
  #attempts = 0;
  /** How often each thing happened, for the coverage of the simulation. */
  readonly counts = {
    resumes: 0,
    resynchronizations: 0,
    overtaken: 0,
    diverged: 0,
    adoptions: 0,
    gaps: 0,
    behind: 0,
    ended: 0,
    superseded: 0,
    overflow: 0,
  };

  /**
   * Called when a secondary knows of records that it does not have: it has joined a newer epoch before it caught up, or has heard that its
   * primary was restored.
   */
  onIncomplete: (site: Site) => void = () => undefined;

  constructor(parts: SessionsParts) {
    this.#parts = parts;
  }

  tick(): void {
    for (const { secondary, primary } of [...this.#connections])
      for (const { site, session } of [secondary, primary]) if (!site.isSuspended) session?.tick();
    for (const site of this.#parts.sites) {
      if (site.active === undefined || site.isSuspended) continue;
      // A primary that was promoted tells its former primary of its epoch.
      if (site.state?.role === 'secondary' || site.state?.role === 'primary') this.#connect(site, this.#site(site.target));
    }
  }

  /** Returns the secondaries that a primary counts, with the positions that they have confirmed. */
  progressOf(primary: Site): SecondaryProgress[] {
    const positions = new Map<string, number>();
    for (const { secondary, primary: end } of this.#connections) {
      const acknowledged = end.site === primary && end.active === primary.active ? end.session?.status().acknowledged : undefined;
      if (acknowledged !== undefined) positions.set(secondary.site.name, acknowledged.index);
    }
    return [...primary.registered].map((secondary) => ({ secondary, acknowledged: positions.get(secondary), absentMs: 0 }));
  }

  #site(name: string | undefined): Site | undefined {
    return this.#parts.sites.find((site) => site.name === name);
  }

  /** Opens a connection, unless there is one. */
  #connect(site: Site, to: Site | undefined): void {
    if (site.active === undefined || to?.active === undefined || to === site) return;
    for (const { secondary, primary } of [...this.#connections]) {
      if (secondary.site !== site || secondary.session === undefined) continue;
      if (primary.site === to) return;
      secondary.session.closed();
    }
    if (!to.registered.has(site.name)) site.isCounted = false; // it has needed a new credential
    const secondary: End<SecondarySession> = { site, active: site.active, session: undefined };
    const primary: End<PrimarySession> = { site: to, active: to.active, session: undefined };
    const connection = { secondary, primary };
    this.#connections.add(connection);
    primary.session = new PrimarySession({
      ...{ secondary: site.name, cluster: this.#primaryCluster(primary), limits, clock: to },
      registered: () => to.register(site.name),
      wire: this.#wire(connection, primary, secondary),
      onEnd: (end) => this.#ended(connection, primary, end),
    });
    let hasEnded = false; // it may end before it is constructed
    const session = new SecondarySession({
      ...{ cluster: this.#secondaryCluster(secondary), limits, clock: site },
      wire: this.#wire(connection, secondary, primary),
      onEnd: (end) => {
        hasEnded = true;
        this.#ended(connection, secondary, end);
      },
    });
    if (!hasEnded) secondary.session = session;
  }

  #wire(
    connection: Connection,
    from: End<PrimarySession> | End<SecondarySession>,
    to: End<PrimarySession> | End<SecondarySession>,
  ): Wire {
    const stream = this.#parts.links.open(from.site, to.site);
    const isRunning = (end: typeof to): boolean => end.site.active === end.active;
    return {
      unsentBytes: 0,
      send: (bytes) => {
        this.#count(connection, decodeFrame(bytes));
        stream.send(
          bytes,
          (frame) => isRunning(to) && to.session?.received(frame),
          () => {
            from.session?.closed();
            to.session?.closed();
          },
        );
      },
      end: () => stream.end(() => to.session?.closed()),
    };
  }

  #count({ secondary, primary }: Connection, frame: Frame): void {
    if (frame.kind === 'welcome') this.counts.resumes += 1;
    if (frame.kind !== 'state') return;
    this.counts.resynchronizations += 1;
    const isPresent = isDeepStrictEqual(frame.epochs, primary.site.state?.epochs);
    this.#require('the state that a primary sends is of its present epoch', isPresent, primary.site);
    const at = secondary.site.state && cursorOf(secondary.site.state);
    if (at !== undefined && !continues(frame.epochs, at)) this.counts.diverged += 1;
  }

  #ended(connection: Connection, end: End<unknown>, reason: SessionEnd): void {
    end.session = undefined;
    if (connection.primary.session === undefined && connection.secondary.session === undefined)
      this.#connections.delete(connection);
    if (reason.why === 'failed') this.#parts.failures.push(reason.error);
    if (reason.why === 'behind') this.counts.behind += 1;
    if (reason.why === 'epoch_ended') this.counts.ended += 1;
    if (reason.why === 'reconnect') this.counts[reason.reason === 'overflow' ? 'overflow' : 'gaps'] += 1;
    this.#require('no frame is unexpected', reason.why !== 'unexpected_frame', end.site);
    if (reason.why === 'stop')
      this.#require('the digests of two clusters agree at a position', reason.reason !== 'digest_differs', end.site);
  }

  /** As `holds`, where an exception would end a session instead of the run. */
  #require(rule: string, isTrue: boolean, { name, state }: Site): void {
    try {
      holds(rule, isTrue, () => ({ name, state }));
    } catch (violation) {
      this.#parts.failures.push(violation);
    }
  }

  #superseded({ site }: End<unknown>, step: ReplicationStep & { kind: 'supersede' }): Promise<void> {
    this.counts.superseded += 1;
    return new Promise((resolve) => site.propose({ replication: step }, () => resolve()));
  }

  #primaryCluster(end: End<PrimarySession>): PrimaryCluster {
    const { site, active } = end;
    return {
      ...this.#cluster(end),
      successionKey,
      outcomes: site.outcomes,
      position: () => site.position,
      digest: (index) => site.machine.scopeDigestAt(index),
      wholeState: () => this.#wholeState(site),
      rootKey: async () => Buffer.alloc(32, 1),
      newAttempt: () => {
        this.#attempts += 1;
        return `attempt-${this.#attempts}`;
      },
      unproven: () => this.#require('every claim of a cluster of the set is proven', false, site),
      answered: (secondary, sentMs, at) => active.node.fence.answered(secondary, sentMs, at),
      acknowledged: () => undefined,
      nodes: () => ({ addresses: ['node:8201'], authorities: ['authority'] }),
    };
  }

  #secondaryCluster(end: End<SecondarySession>): SecondaryCluster {
    const { site, active } = end;
    let keyring: Uint8Array | undefined;
    return {
      ...this.#cluster(end),
      successionKey,
      wantsWholeState: false,
      digest: ({ index }) => site.machine.scopeDigestAt(index),
      rootKey: () => undefined,
      receiving: () => undefined,
      propose: (step) => {
        // The keyring of the state that is being received: the local records are encrypted under its newest key.
        if (step.kind === 'stage') keyring = step.records.find(({ path }) => path === keyringPath)?.value ?? keyring;
        return this.#propose(end, withLocal(site, step, keyring));
      },
      mayAnswer: () => site.active === active && !active.node.secondary.isPromoting,
      answered: (nowMs) => {
        active.node.secondary.answeredMs = nowMs;
      },
      counted: () => site.counted(),
      heard: (position) => {
        active.node.secondary.lastHeard = { ...position, heardMs: site.nowMs() };
        const at = site.state && cursorOf(site.state);
        if (at !== undefined && isBeforeRestore(at, position)) this.onIncomplete(site);
      },
      nodes: () => undefined,
      unproven: () => this.#require('every claim of a cluster of the set is proven', false, site),
    };
  }

  #cluster(end: End<unknown>): Pick<PrimaryCluster & SecondaryCluster, 'state' | 'level' | 'superseded'> {
    const { site, active } = end;
    return {
      state: (): ReplicationState | undefined => (site.active === active ? site.state : undefined),
      level: () => site.machine.featureLevel,
      superseded: (by) => this.#superseded(end, { kind: 'supersede', by }),
    };
  }

  #propose({ site, session }: End<SecondarySession>, replication: ReplicationStep): Promise<Proposed> {
    if (replication.kind === 'adopt') this.counts.adoptions += 1;
    return new Promise((resolve) =>
      site.propose({ replication }, (result) => {
        const isCommitted = result === 'committed';
        // Usually the keys of a new state have to be unsealed before its cluster connects again.
        if (replication.kind === 'swap' && isCommitted && this.#parts.random.chance(0.5)) session?.closed();
        if (replication.kind === 'adopt' && isCommitted) this.onIncomplete(site);
        resolve(result);
      }),
    );
  }

  /** Reads the newest state on the disk of a primary before the next event; the primary accepts more writes while it is sent. */
  #wholeState(site: Site): Promise<ReplicatedSnapshot | undefined> {
    const read = (async (): Promise<ReplicatedSnapshot | undefined> => {
      const snapshot = await snapshotToSend(site.machine);
      if (snapshot === undefined) return undefined;
      if (snapshot.index < site.position) this.counts.overtaken += 1;
      const pages: (readonly ReplicatedRecord[])[] = [];
      for await (const page of snapshot.pages()) pages.push(page);
      await snapshot.close();
      const { state, index, valuesWritten } = snapshot;
      return {
        ...{ state, index, valuesWritten, get: () => undefined, close: async () => undefined },
        pages: async function* () {
          yield* pages;
        },
      };
    })();
    site.disk.push(read.then(() => undefined));
    return read;
  }
}

/** Adds the local records to a swap, under the newest key of the state that was staged. */
function withLocal(site: Site, step: ReplicationStep, keyring: Uint8Array | undefined): ReplicationStep {
  if (step.kind !== 'swap' || keyring === undefined) return step;
  return { ...step, local: site.localRecords(keysIn(keyring).at(-1)), localReadAt: site.machine.applied.appliedIndex };
}
