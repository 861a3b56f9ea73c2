import type { SealConfig, SealStatus } from '@transitd/barrier';
import { JoinError, writeIdentity } from '@transitd/cluster';
import type { Config } from '@transitd/configuration';
import type { Logger } from '@transitd/process';
import { StoreError } from '@transitd/storage-fsm';
import type { DataDirectory } from '../storage/data-directory.ts';
import { type Candidate, configuredTarget, Joining, type JoinTarget, newCandidate } from './joining.ts';

export interface JoinAttemptsParts {
  readonly config: Config;
  readonly seal: SealConfig;
  readonly directory: DataDirectory;
  readonly log: Logger;
  readonly apiAddress: () => string;
  readonly isListening: () => boolean;
  readonly isMember: () => boolean;
  /** Opens what the data directory holds and takes part, unsealed by what a join was given. A failure leaves the node as it was. */
  readonly start: (joining?: Joining) => Promise<void>;
}

/** How a node comes into a cluster, one attempt at a time: it founds one, joins one, or begins at last with what it was made for. */
export class JoinAttempts {
  readonly #parts: JoinAttemptsParts;
  /** A join that waits for the shares of the seal, or is under way. */
  #joining: Joining | undefined;
  /** Of the attempts so far: none of them is known to have been refused. */
  #candidate: Candidate | undefined;
  /** Where a node is let in that was told to go on asking. */
  #retryTarget: JoinTarget | undefined;
  #underWay: Promise<unknown> | undefined;
  #closed = false;

  constructor(parts: JoinAttemptsParts) {
    this.#parts = parts;
  }

  /** Of the cluster that is about to be joined. */
  get sealStatus(): SealStatus | undefined {
    return this.#joining?.sealStatus;
  }

  /** Two at once would both make a node in one directory. @throws StoreError `busy`, `stopped` */
  async alone<T>(what: string, task: () => Promise<T>): Promise<T> {
    if (this.#underWay !== undefined) throw new StoreError('busy', `this node is being ${what}`);
    if (this.#closed) throw new StoreError('stopped', 'this node is stopping');
    const attempt = task();
    this.#underWay = attempt;
    try {
      return await attempt;
    } finally {
      this.#underWay = undefined;
      if (this.#parts.isMember()) this.#forget(); // a member joins nothing any more
    }
  }

  /** A node that was made here but could not begin, its cluster port being in use perhaps, begins now. */
  async resume(): Promise<void> {
    const { directory, isMember, start } = this.#parts;
    if (isMember() || this.#underWay !== undefined || !(await directory.holdsNode())) return;
    await this.alone('started', async () => {
      if (!isMember()) await start();
    });
  }

  /**
   * Joins the cluster of the first of these addresses that lets it in, for a caller without a token: what the calls found is in the log, and
   * all that fails is one error to the caller.
   * @returns whether it is a member now; with a Shamir seal it is with the last of its shares. One that is to be retried goes on in the background.
   * @throws JoinError, StoreError
   */
  async join(request: JoinTarget): Promise<{ readonly joined: boolean }> {
    try {
      return await this.#join(request, { again: request.retry === true });
    } catch (error) {
      throw this.#told(error);
    }
  }

  /** @param again - replaces the target that is tried again by this one, or by none; absent where it stays */
  #join(request: JoinTarget, { again }: { readonly again?: boolean } = {}): Promise<{ readonly joined: boolean }> {
    return this.alone('joined to a cluster', async () => {
      if (again !== undefined) this.#retryTarget = again ? request : undefined;
      this.#forget();
      try {
        const { seal, config, apiAddress } = this.#parts;
        this.#candidate ??= await newCandidate();
        const candidate = this.#candidate;
        const joining = await Joining.prepare({ seal, config, apiAddress: apiAddress(), candidate, ...request });
        this.#joining = joining;
        if (!joining.ready) return { joined: false };
        await this.#complete(joining);
        return { joined: true };
      } catch (error) {
        this.#forget();
        if (error instanceof JoinError && error.code === 'join_malformed') this.#retryTarget = undefined;
        if (this.#retryTarget === undefined || !(error instanceof JoinError)) throw error;
        this.#notYet(error);
        return { joined: false };
      }
    });
  }

  /** Takes a share of the cluster that is about to be joined; false when there is none. @throws BarrierError, JoinError, StoreError */
  async addShare(share: Uint8Array): Promise<boolean> {
    const joining = this.#joining;
    if (joining === undefined) return false;
    await this.alone('joined to a cluster', async () => {
      try {
        if (joining.addShare(share)) await this.#complete(joining);
      } catch (error) {
        // These shares open nothing: they are to be gathered anew, for the seal as it is then.
        if (error instanceof JoinError && isFinal(error)) this.#forget();
        throw this.#told(error);
      }
    });
    return true;
  }

  /** Forgets the shares given so far. */
  reset(): void {
    this.#joining?.reset();
  }

  /** Now and then, while this node belongs to no cluster: what did not succeed is tried again. */
  async again(): Promise<void> {
    const { config, isListening, isMember } = this.#parts;
    if (this.#underWay !== undefined || this.#joining !== undefined || this.#closed || !isListening()) return;
    try {
      await this.resume();
      // The configured one first: a caller without a token may have named the other.
      for (const target of [await configuredTarget(config), this.#retryTarget])
        if (target !== undefined && !isMember() && this.#joining === undefined) await this.#join(target); // it may have become one meanwhile
    } catch (error) {
      this.#notYet(error);
    }
  }

  /** No attempt begins any more, and a join under way ends. */
  close(): void {
    this.#closed = true;
    this.#joining?.close();
  }

  /** Resolves when no attempt is under way, whatever became of it. */
  async ended(): Promise<void> {
    await this.#underWay?.catch(() => undefined);
  }

  /** The seal's key is there: becomes a member, and unseals with what it was given as soon as the records are here. */
  async #complete(joining: Joining): Promise<void> {
    const { directory, start, log } = this.#parts;
    const { clusterId, nodeId, identity } = await joining.complete().catch((error: unknown) => {
      // Refused: the id may be used up. An attempt without an answer may have been admitted, and is repeated with the same id.
      if (!(error instanceof JoinError && error.code === 'leader_unavailable')) this.#candidate = undefined;
      throw error;
    });
    this.#candidate = undefined;
    await writeIdentity(directory.path, identity);
    await directory.joinCluster({ clusterId, nodeId });
    await start(joining).finally(() => this.#forget());
    log.info({ cluster: clusterId }, 'joined');
  }

  /** What a caller without a token is told: not whether and how an address that it named has answered. */
  #told(error: unknown): unknown {
    if (!(error instanceof JoinError) || isOfCaller(error)) return error;
    this.#parts.log.warn({ reason: error.message }, 'this node could not join a cluster');
    return new JoinError('leader_unavailable', 'this node could not join: its log says why');
  }

  #forget(): void {
    this.#joining?.close();
    this.#joining = undefined;
  }

  #notYet(error: unknown): void {
    this.#parts.log.info({ reason: error instanceof Error ? error.message : String(error) }, 'not joined yet');
  }
}

/** It comes from the request or from this node alone. */
const isOfCaller = ({ code }: JoinError): boolean => code === 'join_malformed' || code === 'seal_changed';

const isFinal = ({ code }: JoinError): boolean => code === 'seal_changed' || code === 'leader_untrusted';
