import {
  type Command,
  type EpochName,
  isLocal,
  type KeyValueMachine,
  type ReplicationState,
  sameEpoch,
} from '@transitd/storage-fsm';
import { following } from '../registry/registry.ts';
import type { StoredRegistry } from '../registry/stored-registry.ts';
import { Contacts, type FenceSettings, fenceOf, type MonotonicClock, mayAccept } from './fence.ts';

interface FencedStorage {
  readonly machine: Pick<KeyValueMachine, 'replication'>;
  readonly driver: { status(): { readonly term: number } };
  /** When this node last noticed that its monotonic clock had stood still. */
  clockJumpedMs(): number;
}

type ReadRegistry = Pick<StoredRegistry, 'current' | 'isRead' | 'refresh'>;

/** Refuses commands of a cluster whose role in replication does not permit them. */
export interface Fence {
  /** Returns why the command is refused; undefined if it is not. */
  refusal(command: Command): string | undefined;
}

/** Returns why a node without a cluster port may not accept the command: no secondary can reach it. Undefined if it may. */
export function refusalWithoutPort(replication: ReplicationState | undefined, command: Command): string | undefined {
  if (replication?.fenceMs === undefined || replication.role !== 'primary') return undefined;
  if (isLocalChange(command, replication)) return undefined;
  return 'the set has a fence, and without cluster_addr no secondary can reach this node: set cluster_addr and restart';
}

/** Returns whether a command changes no replicated record. Of the steps that a primary commits, only a restore changes them. */
const isLocalChange = (command: Command, state: ReplicationState): boolean =>
  'writes' in command
    ? command.writes.every(({ path }) => isLocal(state, path))
    : !('replication' in command && command.replication.kind === 'restore');

/** `off`: the set has no fence, or this cluster is not its primary. */
interface FenceStatus {
  readonly state: 'off' | 'open' | 'closed';
  /** The secondary that has been silent longest. */
  readonly secondary?: string;
  /** Time since that secondary answered a heartbeat; undefined if it has not answered this node in this epoch. */
  readonly silentMs?: number;
  /** The fence closes after this time without an answer of that secondary. */
  readonly afterMs?: number;
}

/**
 * The fence of a primary on one node: whether the contact with all of its secondaries is recent enough to accept a write. Local records,
 * such as the list of secondaries, can be written at any time: revoking a secondary opens the fence.
 */
export class WriteFence {
  readonly #storage: FencedStorage;
  readonly #registry: ReadRegistry;
  readonly #clock: MonotonicClock;
  #contacts: { readonly epoch: EpochName; readonly contacts: Contacts } | undefined;
  /** The term in which this node has read which secondaries there are: it may not have applied earlier what it must know as the leader. */
  #readInTerm: number | undefined;

  constructor(storage: FencedStorage, registry: ReadRegistry, clock: MonotonicClock) {
    this.#storage = storage;
    this.#registry = registry;
    this.#clock = clock;
  }

  /** Reads the secondaries once in each term. Call it on an unsealed node that has become active. @throws StoreError, CodecError */
  async activated(term: number): Promise<void> {
    if (this.#readInTerm === term && this.#registry.isRead) return;
    await this.#registry.refresh();
    this.#readInTerm = term;
  }

  /** Notes the answer of a secondary to the heartbeat that was sent at `sentMs`. */
  answered(secondary: string, sentMs: number, at: EpochName): void {
    this.#presentContacts()?.answered(secondary, sentMs, at);
  }

  /** Returns why the command may not be accepted or acknowledged now; undefined if it may. */
  refusal(command: Command): string | undefined {
    const { replication } = this.#storage.machine;
    const fence = replication && fenceOf(replication);
    if (replication === undefined || fence === undefined) return undefined;
    if (replication.role === 'superseded') return 'another cluster of the set was promoted';
    // A write that was accepted before the demotion may be answered after it.
    const isWriting = replication.role === 'primary' || replication.role === 'demoted';
    if (!isWriting || isLocalChange(command, replication)) return undefined;
    const { state, secondary, silentMs } = this.#measured(fence);
    if (state !== 'closed') return undefined;
    if (secondary === undefined) return 'this node has not read yet which secondaries the fence waits for';
    const silence = silentMs === undefined ? 'has not answered this node yet' : `has not answered for ${Math.round(silentMs)} ms`;
    return (
      `the secondary ${secondary} ${silence}, and fence_after is ${fence.afterMs} ms: ` +
      'no writes until it answers, or is revoked'
    );
  }

  get status(): FenceStatus {
    const { replication } = this.#storage.machine;
    const fence = replication && fenceOf(replication);
    return fence === undefined || replication?.role !== 'primary' ? { state: 'off' } : this.#measured(fence);
  }

  #measured(fence: FenceSettings): FenceStatus {
    const [storage, registry] = [this.#storage, this.#registry];
    const { afterMs } = fence;
    const contacts = this.#presentContacts();
    const isRead = registry.isRead && this.#readInTerm === storage.driver.status().term;
    if (contacts === undefined || !isRead) return { state: 'closed', afterMs };
    const secondaries = following(registry.current);
    const silent = contacts.mostSilent(secondaries);
    if (silent === undefined) return { state: 'open', afterMs };
    const { secondary, sinceMs } = silent;
    const time = this.#clock.nowMs();
    // The monotonic clock stands still while the machine is suspended: what was heard before may be older than it seems.
    const isDatable = sinceMs !== undefined && sinceMs > storage.clockJumpedMs();
    const isOpen = isDatable && mayAccept(fence, { contacts, secondaries, nowMs: time });
    return { state: isOpen ? 'open' : 'closed', secondary, ...(sinceMs !== undefined && { silentMs: time - sinceMs }), afterMs };
  }

  #presentContacts(): Contacts | undefined {
    const epoch = this.#storage.machine.replication?.epochs.at(-1);
    if (epoch === undefined) return undefined;
    if (this.#contacts === undefined || !sameEpoch(this.#contacts.epoch, epoch))
      this.#contacts = { epoch, contacts: new Contacts(epoch) };
    return this.#contacts.contacts;
  }
}
