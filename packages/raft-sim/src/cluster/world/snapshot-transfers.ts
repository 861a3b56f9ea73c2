import type { Done, LogIndex, NodeId, SnapshotMeta } from '@transitd/raft-core';
import type { Member } from '../node/member.ts';
import type { NodeProcess } from '../process/process.ts';
import { type SnapshotPeer, SnapshotPort } from '../snapshots/snapshot-port.ts';
import { StreamedSnapshots } from '../snapshots/streamed-snapshots.ts';
import type { OpenStorage, StateImage, StateImages } from '../storage/storage.ts';
import type { DeviceTimes } from './device-times.ts';
import type { World } from './world.ts';

/** Moves snapshots between the nodes of a cluster: whole states as images, or the streams of a storage that has its own. */
export class SnapshotTransfers {
  readonly #cluster: World;
  readonly #times: DeviceTimes;

  constructor(cluster: World, times: DeviceTimes) {
    this.#cluster = cluster;
    this.#times = times;
  }

  /** Returns the port of one incarnation of a node. */
  of(member: Member, process: NodeProcess, streams: OpenStorage['streams']): SnapshotPort | StreamedSnapshots {
    return streams === undefined ? this.#imaged(member, process) : this.#streamed(member, process, streams);
  }

  #imaged(member: Member, process: NodeProcess): SnapshotPort {
    return new SnapshotPort({
      id: member.id,
      world: this.#cluster.clock,
      process,
      peer: (id) => this.#snapshotPeer(id),
      pieceDelayMs: (from) => this.#pieceDelayMs(from, member.id),
      syncMs: () => this.#times.stateSyncMs(member) + (this.#cluster.isHealed ? 0 : this.#cluster.random.below(100)),
      arrives: (meta) => member.beforeSnapshot?.(meta),
      begins: () => this.#cluster.safety.installsAlone(member.id, member.incarnation?.machine.isFlushing === true),
      install: (snapshot, done) => this.#install(member, snapshot, done),
    });
  }

  #streamed(member: Member, process: NodeProcess, streams: NonNullable<OpenStorage['streams']>): StreamedSnapshots {
    return new StreamedSnapshots({
      streams: streams({ open: (from, index) => this.#stream(from, { member, process }, index) }),
      enter: (task) => this.#cluster.report(process, task),
      installs: (meta) => this.#installs(member, meta),
      installed: () => this.#installed(member),
    });
  }

  /**
   * Streams a snapshot from one node to another, at the pace of the network between them, until either node ends or the network cuts it.
   */
  async *#stream(
    from: NodeId,
    to: { readonly member: Member; readonly process: NodeProcess },
    index: LogIndex,
  ): AsyncGenerator<Uint8Array> {
    const arrives = async (): Promise<void> => {
      const delayMs = this.#pieceDelayMs(from, to.member.id);
      await new Promise<void>((resolve) => this.#cluster.clock.after(delayMs ?? 500, resolve));
      if (delayMs === undefined || !to.process.isAlive) throw new Error('the network broke the stream');
    };
    await arrives();
    const incarnation = this.#cluster.member(from)?.incarnation;
    if (incarnation === undefined || incarnation.process.isPaused || !(incarnation.snapshots instanceof StreamedSnapshots))
      throw new Error(`node ${from} does not answer`);
    for await (const chunk of incarnation.snapshots.stream(to.member.id, index)) {
      await arrives();
      if (this.#cluster.member(from)?.incarnation !== incarnation) throw new Error(`node ${from} has ended`);
      yield chunk;
    }
  }

  #snapshotPeer(id: NodeId): SnapshotPeer | undefined {
    const member = this.#cluster.member(id);
    const incarnation = member?.incarnation;
    if (member === undefined || incarnation === undefined || !(incarnation.snapshots instanceof SnapshotPort)) return undefined;
    const { snapshots } = incarnation;
    const isSame = (): boolean => member.incarnation === incarnation;
    return {
      isSame,
      open: () => {
        const source = snapshots.source;
        if (!isSame() || incarnation.process.isPaused || source === undefined) return undefined;
        const image = this.#images(member).image();
        return { image, meta: source.describe(image.applied) };
      },
      failed: (reader) => this.#cluster.enter(member, incarnation, () => snapshots.source?.failed(reader)),
    };
  }

  #pieceDelayMs(from: NodeId, to: NodeId): number | undefined {
    const breaks = !this.#cluster.isHealed && this.#cluster.random.chance(0.05 + this.#cluster.config.network.drop / 2);
    const { untilMs = 0, pieceMs = 0 } = this.#cluster.member(to)?.streaming ?? {};
    if (this.#cluster.clock.now() < untilMs) return 1 + this.#cluster.random.below(pieceMs);
    if (breaks || this.#cluster.network.isCut(from, to) || this.#cluster.network.isCut(to, from)) {
      this.#cluster.coverage.met('snapshot stream broken');
      return undefined;
    }
    const { delayMsMax, heavyTail } = this.#cluster.config.network;
    return 1 + this.#cluster.random.below(this.#cluster.isHealed ? 5 : 3 * delayMsMax + (heavyTail > 0 ? 800 : 20));
  }

  #install(member: Member, snapshot: { readonly meta: SnapshotMeta; readonly image: StateImage }, done: Done): void {
    this.#installs(member, snapshot.meta);
    this.#images(member).install(snapshot, (error) => {
      if (error === undefined) this.#installed(member);
      done(error);
    });
  }

  #installs(member: Member, meta: SnapshotMeta): void {
    this.#cluster.safety.installsAlone(member.id, member.incarnation?.machine.isFlushing === true);
    this.#cluster.trace.note(this.#cluster.clock.now(), 'install', member.id, meta.index, meta.term);
    this.#cluster.safety.installs(member.observed, meta);
  }

  #installed(member: Member): void {
    this.#cluster.safety.installed(member.observed);
    const machine = member.incarnation?.machine;
    if (machine !== undefined) this.#cluster.safety.applied(member.id, machine.applied, machine.digest);
  }

  #images({ storage, id }: Member): StateImages {
    if (storage.images === undefined) throw new Error(`the storage of node ${id} has no images`);
    return storage.images;
  }
}
