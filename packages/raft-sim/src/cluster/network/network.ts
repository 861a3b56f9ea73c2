import {
  CodecError,
  commonVersion,
  decodeMessage,
  encodeMessage,
  isInVersion,
  type Message,
  type NodeId,
  type WireVersions,
} from '@transitd/raft-core';
import type { SimClock } from '../../fakes/sim-clock.ts';
import type { SimRandom } from '../../fakes/sim-random.ts';
import type { Coverage } from '../checks/coverage.ts';
import type { NetworkFaults } from '../config/config.ts';
import { crc32c } from './crc32c.ts';
import { Streams } from './streams.ts';
import { readFrame, writeFrame } from './versioned-frame.ts';

/** Ten of the longest election timeouts. */
const TAIL_MS_MAX = 20_000;
const REPLAY_MS_MAX = 30_000;
/** Simulated ids are small, so a directed link fits in one number. */
const LINKS = 2 ** 20;

const UNKNOWN_TYPE = 99;

interface Hold {
  readonly matches: (message: Message) => boolean;
  readonly kept: { readonly message: Message; readonly sentAtMs: number }[];
}

export interface World {
  readonly clock: SimClock;
  readonly random: SimRandom;
  readonly coverage: Coverage;
  /** The versions that each node reads and writes, if nodes differ. */
  readonly versions?: (id: NodeId) => WireVersions;
  /** Whether messages travel on connections, which keep their order; otherwise each message travels on its own. */
  readonly hasStreams?: boolean;
}

/** Links between all nodes that lose, delay, reorder, duplicate, corrupt and replay messages, across the incarnations of a node. */
export class SimNetwork {
  readonly #clock: SimClock;
  readonly #random: SimRandom;
  readonly #deliver: (message: Message, sentAtMs: number) => void;
  readonly #coverage: Coverage;
  readonly #versions: World['versions'];
  readonly #streams: Streams | undefined;
  #faults: NetworkFaults;
  readonly #cut = new Set<number>();
  /** Messages held back for now. */
  readonly #holds = new Set<Hold>();
  /** When the newest message of a link arrives, for links that keep the order. */
  readonly #arrivals = new Map<number, number>();

  constructor(
    { clock, random, coverage, versions, hasStreams = false }: World,
    faults: NetworkFaults,
    deliver: (message: Message, sentAtMs: number) => void,
  ) {
    this.#clock = clock;
    this.#random = random;
    this.#coverage = coverage;
    this.#versions = versions;
    this.#streams = hasStreams ? new Streams({ clock, coverage }) : undefined;
    this.#faults = faults;
    this.#deliver = deliver;
  }

  cut(from: NodeId, to: NodeId): void {
    this.#cut.add(from * LINKS + to);
  }

  mend(from: NodeId, to: NodeId): void {
    this.#cut.delete(from * LINKS + to);
  }

  isCut(from: NodeId, to: NodeId): boolean {
    return this.#cut.has(from * LINKS + to);
  }

  mendAll(): void {
    this.#cut.clear();
  }

  /** Holds back the messages that `matches` selects from now on, until the returned function delivers them, in their order. */
  hold(matches: (message: Message) => boolean): () => void {
    const hold: Hold = { matches, kept: [] };
    this.#holds.add(hold);
    return () => {
      if (!this.#holds.delete(hold)) return;
      for (const { message, sentAtMs } of hold.kept) this.#clock.after(0, () => this.#deliver(message, sentAtMs));
    };
  }

  /** Returns how many such messages are held back. */
  kept(matches: (message: Message) => boolean): number {
    return [...this.#holds].reduce((sum, { kept }) => sum + kept.filter(({ message }) => matches(message)).length, 0);
  }

  /** Makes every link work from now on; messages under way arrive as planned. */
  heal(): void {
    this.#holds.clear();
    this.mendAll();
    this.#faults = { ...this.#faults, drop: 0, duplicate: 0, heavyTail: 0, replay: 0, corrupt: 0, delayMsMax: 5 };
  }

  send(message: Message): void {
    for (const { matches, kept } of this.#holds) {
      if (!matches(message)) continue;
      kept.push({ message, sentAtMs: this.#clock.now() });
      return;
    }
    const { drop, duplicate, heavyTail, replay, corrupt, delayMsMax } = this.#faults;
    const random = this.#random;
    const delayMs = 0.1 + (random.uint32() / 2 ** 32) * delayMsMax;
    if (this.#streams !== undefined) {
      this.#stream(this.#streams, message, delayMs);
      return;
    }
    if (drop > 0 && random.chance(drop)) return;
    if (corrupt > 0 && random.chance(corrupt)) {
      this.#corrupt(message);
      return;
    }
    if (this.isCut(message.from, message.to)) return;
    if (heavyTail > 0 && random.chance(heavyTail)) this.#plan(message, random.below(TAIL_MS_MAX), 'detour');
    else this.#plan(message, delayMs, this.#faults.reorder ? 'unordered' : 'ordered');
    if (duplicate > 0 && random.chance(duplicate)) this.#plan(message, delayMs * (1 + random.below(20)), 'unordered');
    if (replay > 0 && random.chance(replay)) this.#plan(message, 1000 + random.below(REPLAY_MS_MAX), 'detour');
  }

  /** Lets a connection stall. */
  stall(from: NodeId, to: NodeId, durationMs: number): void {
    this.#streams?.stall(from * LINKS + to, durationMs);
  }

  /** Ends a connection, and connects again. @see Streams.end */
  reconnect(from: NodeId, to: NodeId, how: { readonly kept: number; readonly reconnectMs: number }): void {
    this.#streams?.end(from * LINKS + to, how);
  }

  /** A cut link ends its connection when a frame is sent or arrives. */
  #stream(streams: Streams, message: Message, delayMs: number): void {
    const link = message.from * LINKS + message.to;
    const sentAtMs = this.#clock.now();
    const carried = this.#carry(message);
    const passes = (): boolean => {
      if (this.#cut.has(link)) streams.end(link, { kept: 0, reconnectMs: 50 });
      return !this.#cut.has(link);
    };
    if (!passes()) return;
    streams.send(link, delayMs, () => {
      if (!passes()) return;
      const arrived = carried();
      if (arrived !== undefined) this.#deliver(arrived, sentAtMs);
    });
  }

  #plan(message: Message, delayMs: number, way: 'ordered' | 'unordered' | 'detour'): void {
    const link = message.from * LINKS + message.to;
    const sentAtMs = this.#clock.now();
    let atMs = sentAtMs + delayMs;
    if (way === 'ordered') {
      atMs = Math.max(atMs, this.#arrivals.get(link) ?? 0);
      this.#arrivals.set(link, atMs);
    }
    const carried = this.#carry(message);
    this.#clock.after(atMs - sentAtMs, () => {
      // A cut link also loses messages under way, except those with a long delay.
      if (way !== 'detour' && this.#cut.has(link)) return;
      const arrived = carried();
      if (arrived !== undefined) this.#deliver(arrived, sentAtMs);
    });
  }

  /**
   * Returns the message that arrives; undefined if the receiver does not read the version in which the message was written. Decided on
   * arrival.
   */
  #carry(message: Message): () => Message | undefined {
    const versions = this.#versions;
    if (versions === undefined) {
      const carried = this.#faults.codec ? decodeMessage(encodeMessage(message)) : message;
      return () => carried;
    }
    const [from, to] = [versions(message.from), versions(message.to)];
    const version = commonVersion(from, to);
    // No node is asked in a version that has no questions; a transport drops them.
    if (!isInVersion(message.type, version ?? from.newest)) return () => undefined;
    const frame = writeFrame(message, version ?? from.newest);
    // A newer node sends a type that the older does not know. An agreed version forbids that; the older node must tolerate it nevertheless.
    if (from.newest > to.newest && this.#random.chance(0.02)) frame[1] = UNKNOWN_TYPE;
    return () => this.#read(frame, versions(message.to));
  }

  #read(frame: Uint8Array, versions: WireVersions): Message | undefined {
    try {
      const message = readFrame(frame, versions);
      if (frame[0] !== versions.newest) this.#coverage.met('frame of an older version read');
      return message;
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      this.#coverage.met(frame[1] === UNKNOWN_TYPE ? 'message of an unknown type dropped' : 'frame of another version dropped');
      return undefined;
    }
  }

  /** Corrupts a frame. The checksum finds the damage, but the decoder must tolerate it too: it does not rely on the checksum. */
  #corrupt(message: Message): void {
    const frame = encodeMessage(message);
    const sum = crc32c(frame);
    // An odd number of flipped bits cannot cancel out, and this checksum finds every odd number.
    for (let flips = 1 + 2 * this.#random.below(3); flips > 0; flips--) {
      const at = this.#random.below(frame.length);
      frame[at] = (frame[at] ?? 0) ^ (1 << this.#random.below(8));
    }
    try {
      decodeMessage(frame);
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
    }
    this.#coverage.met('frame corrupted');
    if (crc32c(frame) === sum) this.#plan(message, 0, 'unordered');
  }
}
