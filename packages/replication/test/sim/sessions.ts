import type { SimClock, SimRandom } from '@transitd/raft-core/sim';
import { continues, cursorOf, type ReplicationStep } from '@transitd/storage-fsm';
import {
  answerHello,
  claimOf,
  Follower,
  type FollowerAction,
  type Frame,
  isBeforeRestore,
  judgeClaim,
  meetingOf,
  type ReportedPosition,
  type SecondaryProgress,
  Sender,
  snapshotToSend,
  stateFrames,
  successionKeyBytes,
} from '../../src/index.ts';
import type { Connection, Links } from './links.ts';
import { holds } from './oracle.ts';
import { keyringPath, keysIn, type Site } from './site.ts';

export const heartbeatMs = 20;
const silentMaxMs = 150;
const limits = { frameBytes: 600, framesMax: 4 };

/** Each site has the state of the set, and so its key. */
const successionKey = Buffer.alloc(successionKeyBytes, 9);

/** The connections of all sites: the part that the server does around the package. */
export class Sessions {
  readonly #parts: { clock: SimClock; random: SimRandom; links: Links; sites: readonly Site[] };
  readonly #followers = new Map<Connection, { follower: Follower; heardMs: number }>();
  readonly #senders = new Map<Connection, Sender>();
  /** Positions that secondaries have confirmed on their connections. */
  readonly #acknowledged = new Map<Connection, number>();
  /** Connections on which the whole state is being sent, with a function that ends it. */
  readonly #states = new Map<Connection, () => void>();
  /** Keyrings of the states that are being received. */
  readonly #keyrings = new Map<Connection, Uint8Array>();
  /** The newest heartbeat of its primary that each secondary has heard. */
  readonly heard = new Map<string, ReportedPosition>();
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

  /** Called when a secondary has joined a newer epoch, before it has caught up. */
  onAdopted: (site: Site) => void = () => undefined;

  /** Called when a secondary has heard that its primary was restored, before it has received the restored state. */
  onBeforeRestore: (site: Site) => void = () => undefined;

  constructor(parts: { clock: SimClock; random: SimRandom; links: Links; sites: readonly Site[] }) {
    this.#parts = parts;
  }

  tick(): void {
    for (const [connection, { heardMs }] of this.#followers)
      if (this.#parts.clock.now() - heardMs > silentMaxMs) this.#close(connection);
    for (const connection of [...this.#followers.keys(), ...this.#senders.keys(), ...this.#states.keys()])
      if (!this.#parts.links.isAlive(connection)) this.#close(connection);
    for (const site of this.#parts.sites) {
      if (site.active === undefined) continue;
      if (site.state?.role === 'secondary') this.#connect(site);
      if (site.state?.role === 'primary') this.#announce(site);
    }
    for (const connection of [...this.#senders.keys(), ...this.#states.keys()]) this.#heartbeat(connection);
    for (const connection of this.#senders.keys()) this.#pump(connection);
  }

  /** Returns the secondaries that a primary counts, with the positions that they have confirmed. */
  progressOf(primary: Site): SecondaryProgress[] {
    const positions = new Map<string, number>();
    for (const [connection, index] of this.#acknowledged)
      if (connection.primary === primary && this.#parts.links.isAlive(connection))
        positions.set(connection.secondary.name, index);
    return [...primary.registered].map((secondary) => ({ secondary, acknowledged: positions.get(secondary), absentMs: 0 }));
  }

  #site(name: string | undefined): Site | undefined {
    return this.#parts.sites.find((site) => site.name === name);
  }

  #close(connection: Connection): void {
    connection.isOpen = false;
    this.#followers.delete(connection);
    this.#acknowledged.delete(connection);
    this.#senders.get(connection)?.close();
    this.#senders.delete(connection);
    this.#states.get(connection)?.();
    this.#states.delete(connection);
  }

  #connect(site: Site): void {
    const primary = this.#site(site.target);
    if (site.active === undefined || primary?.active === undefined || primary === site) return;
    for (const connection of this.#followers.keys()) if (connection.secondary === site) return;
    const connection: Connection = { ends: [site.active, primary.active], secondary: site, primary, isOpen: true };
    const follower = new Follower({
      state: () => stateOf(site),
      level: () => site.machine.featureLevel,
      wantsWholeState: () => false,
      digest: ({ index }) => site.machine.scopeDigestAt(index),
      queueMax: 64,
    });
    this.#followers.set(connection, { follower, heardMs: this.#parts.clock.now() });
    this.#toPrimary(connection, follower.hello(successionKey));
  }

  #toPrimary(connection: Connection, frame: Frame): void {
    const { secondary, primary } = connection;
    const deliver = (received: Frame) => this.#parts.links.isAlive(connection) && this.#atPrimary(connection, received);
    this.#parts.links.send(secondary, primary, frame, deliver, () => this.#close(connection));
  }

  #toSecondary(connection: Connection, frame: Frame): void {
    const { secondary, primary } = connection;
    const deliver = (received: Frame) => this.#parts.links.isAlive(connection) && this.#atSecondary(connection, received);
    this.#parts.links.send(primary, secondary, frame, deliver, () => this.#close(connection));
  }

  #atPrimary(connection: Connection, frame: Frame): void {
    const { primary, secondary } = connection;
    if (frame.kind === 'ack' && frame.at !== undefined) {
      this.#senders.get(connection)?.acknowledged(frame.at.index);
      if (continues(stateOf(primary).epochs, frame.at)) this.#acknowledged.set(connection, frame.at.index);
      if (frame.echoMs !== undefined) primary.contacts()?.answered(secondary.name, frame.echoMs, frame.at);
      this.#pump(connection);
    }
    if (frame.kind !== 'hello' || this.#senders.has(connection) || this.#states.has(connection)) return;
    const answer = answerHello(frame, {
      state: primary.state,
      level: primary.machine.featureLevel,
      continuesFrom: (index) => primary.outcomes.continuesFrom(index),
      successionKey,
    });
    if (answer.kind === 'superseded') {
      this.counts.superseded += 1;
      primary.propose({ conditions: [], writes: [], replication: { kind: 'supersede', by: answer.by } });
      return;
    }
    if (answer.kind === 'refuse') {
      this.#toSecondary(connection, { kind: 'refusal', reason: answer.reason });
      return;
    }
    if (frame.cursor !== undefined) primary.registered.add(secondary.name);
    const { epochs } = stateOf(primary);
    const epoch = epochs.at(-1);
    if (epoch === undefined) return;
    if (answer.kind === 'resume') {
      this.counts.resumes += 1;
      this.#toSecondary(connection, { kind: 'welcome', epochs });
      this.#senders.set(connection, new Sender(primary.outcomes, { from: answer.from.index, epoch, limits }));
      this.#pump(connection);
    } else {
      this.counts.resynchronizations += 1;
      if (answer.diverged) this.counts.diverged += 1;
      this.#states.set(connection, () => undefined);
      primary.disk.push(this.#sendState(connection));
    }
  }

  /** Sends the newest state on the primary's disk, a frame at a time, while the primary accepts more writes. */
  async #sendState(connection: Connection): Promise<void> {
    const { primary } = connection;
    const snapshot = await snapshotToSend(primary.machine);
    const epoch = snapshot?.state.epochs.at(-1);
    if (snapshot === undefined || epoch === undefined) {
      this.#close(connection);
      return;
    }
    const { index } = snapshot;
    if (index < primary.position) this.counts.overtaken += 1;
    const hold = primary.outcomes.hold(index);
    this.#states.set(connection, hold.release);
    this.#attempts += 1;
    const frames: Frame[] = [];
    for await (const frame of stateFrames(snapshot, { attempt: `attempt-${this.#attempts}`, chunkBytes: 200 }))
      frames.push(frame);
    await snapshot.close();
    const next = (): void => {
      const frame = frames.shift();
      if (!this.#parts.links.isAlive(connection)) return;
      if (frame !== undefined) {
        this.#toSecondary(connection, frame);
        this.#parts.clock.after(this.#parts.random.between(1, 40), next);
        return;
      }
      this.#states.delete(connection);
      this.#senders.set(connection, new Sender(primary.outcomes, { from: index, epoch, limits, hold }));
      this.#pump(connection);
    };
    next();
  }

  #pump(connection: Connection): void {
    const frames = this.#senders.get(connection)?.frames(stateOf(connection.primary));
    if (frames === 'behind' || frames === 'ended') {
      this.counts[frames] += 1;
      this.#close(connection);
    } else for (const frame of frames ?? []) this.#toSecondary(connection, frame);
  }

  #heartbeat(connection: Connection): void {
    const { primary } = connection;
    const state = stateOf(primary);
    const epoch = state.epochs.at(-1);
    if (epoch === undefined || (state.role !== 'primary' && state.role !== 'demoted')) {
      this.#close(connection);
      return;
    }
    const at = { number: epoch.number, id: epoch.id, index: primary.position };
    const [sentMs, digest] = [primary.nowMs(), primary.machine.scopeDigestAt(primary.position)];
    const { restoredAt } = state;
    this.#toSecondary(connection, { kind: 'heartbeat', at, sentMs, demoted: state.role === 'demoted', restoredAt });
    if (digest !== undefined) this.#toSecondary(connection, { kind: 'checkpoint', at, digest });
  }

  #atSecondary(connection: Connection, frame: Frame): void {
    const session = this.#followers.get(connection);
    const { secondary } = connection;
    if (session === undefined || secondary.state?.role !== 'secondary') {
      this.#close(connection);
      return;
    }
    session.heardMs = this.#parts.clock.now();
    if (frame.kind === 'heartbeat') {
      this.heard.set(secondary.name, frame);
      this.#acknowledge(connection, frame.sentMs);
      const at = cursorOf(secondary.state);
      if (at !== undefined && isBeforeRestore(at, frame)) this.onBeforeRestore(secondary);
    } else {
      if (frame.kind === 'welcome') secondary.isCounted = true;
      this.#act(connection, session.follower, session.follower.received(frame));
    }
  }

  #acknowledge(connection: Connection, echoMs: number | undefined): void {
    const { active, state } = connection.secondary;
    const at = state && cursorOf(state);
    if (active === undefined || state === undefined || at === undefined || state.role !== 'secondary') return;
    if (echoMs !== undefined && active.promoting) return;
    if (echoMs !== undefined) active.answeredMs = connection.secondary.nowMs();
    this.#toPrimary(connection, { kind: 'ack', at, echoMs });
  }

  #act(connection: Connection, follower: Follower, action: FollowerAction): void {
    const { secondary } = connection;
    if (action.kind === 'wait') return;
    holds('the digests of two clusters agree at a position', action.kind !== 'stop' || action.why !== 'digest_differs', () => ({
      secondary: secondary.name,
      state: secondary.state,
    }));
    if (action.kind !== 'propose') {
      this.counts[action.kind === 'reconnect' && action.why === 'overflow' ? 'overflow' : 'gaps'] += 1;
      this.#close(connection);
      return;
    }
    if (action.step.kind === 'adopt') this.counts.adoptions += 1;
    const replication = this.#withLocal(connection, action.step);
    secondary.propose({ conditions: [], writes: [], replication }, (result) => {
      if (!this.#parts.links.isAlive(connection)) return;
      this.#acknowledge(connection, undefined);
      // Usually the keys of a new state have to be unsealed before its cluster connects again.
      if (action.step.kind === 'swap' && result === 'committed' && this.#parts.random.chance(0.5)) {
        this.#close(connection);
        return;
      }
      if (action.step.kind === 'adopt' && result === 'committed') this.onAdopted(secondary);
      this.#act(connection, follower, follower.settled(result));
    });
  }

  /** Adds the local records to a swap, under the newest key of the state that was staged. */
  #withLocal(connection: Connection, step: ReplicationStep): ReplicationStep {
    if (step.kind === 'stage') {
      const keyring = step.records.find(({ path }) => path === keyringPath);
      if (keyring !== undefined) this.#keyrings.set(connection, keyring.value);
    }
    const keyring = this.#keyrings.get(connection);
    if (step.kind !== 'swap' || keyring === undefined) return step;
    const { secondary } = connection;
    const local = secondary.localRecords(keysIn(keyring).at(-1));
    return { ...step, local, localReadAt: secondary.machine.applied.appliedIndex };
  }

  /** Primaries tell every site of their epoch, and a site of a higher epoch answers. */
  #announce(site: Site): void {
    for (const other of this.#parts.sites) if (other !== site) this.#announceTo(site, other);
  }

  #announceTo(site: Site, other: Site): void {
    const epoch = site.state?.epochs.at(-1);
    if (epoch === undefined) return;
    const frame: Frame = { kind: 'announce', ...claimOf(stateOf(site).set, epoch, successionKey) };
    this.#parts.links.send(site, other, frame, (received) => {
      const own = other.state?.epochs.at(-1);
      if (received.kind !== 'announce' || other.active === undefined || own === undefined) return;
      if (judgeClaim(stateOf(other), received, successionKey) === 'proven') {
        this.counts.superseded += 1;
        other.propose({ conditions: [], writes: [], replication: { kind: 'supersede', by: received.epoch } });
      }
      const isAnswered = other.state?.role === 'primary' && meetingOf(own, received.epoch) !== 'same';
      if (isAnswered && site.state?.role === 'primary' && this.#parts.random.chance(0.5)) this.#announceTo(other, site);
    });
  }
}

function stateOf(site: Site) {
  if (site.state === undefined) throw new TypeError(`${site.name} takes part in no replication`);
  return site.state;
}
