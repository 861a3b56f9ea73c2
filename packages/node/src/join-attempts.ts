import { ClusterError, writeIdentity } from '@transitd/cluster';
import { sharedRun } from '@transitd/event-loop';
import { LogLimit } from '@transitd/process';
import { StoreError } from '@transitd/storage-fsm';
import { type Candidate, configuredTarget, Joining, type JoinTarget, newCandidate } from './join/joining.ts';
import type { NodeHost } from './node-host.ts';
import type { Member, Phases } from './phases.ts';

type JoiningHost = Pick<NodeHost, 'api' | 'config' | 'directory' | 'log' | 'opened'>;

/** Pause between attempts to join the configured cluster while a join that a request asked for is pending. */
const preferMs = 5_000;

/**
 * Runs the attempts of this node to become a member of a cluster, one at a time: to bootstrap a cluster, to join one, or to start a node
 * that was created before.
 */
export class JoinAttempts {
  readonly #host: JoiningHost;
  readonly #phases: Phases;
  /** Whether the target of the join is the configured one, which a caller without a token cannot replace. */
  #isConfigured = false;
  #preferredMs = Number.NEGATIVE_INFINITY;
  /** Id and key of the attempts so far, unless one of them was refused. */
  #candidate: Candidate | undefined;
  /** The target of a join request with `retry`. */
  #retryTarget: JoinTarget | undefined;
  #attempt: { readonly what: string; readonly ended: Promise<unknown> } | undefined;
  /** The attempts that this node makes by itself each second. Requests wait for their end instead of failing by chance. */
  #round: Promise<void> = Promise.resolve();
  readonly #retrying = sharedRun(() => this.#retryOnce());
  /** Aborted when the node stops: ends the attempt in progress, and refuses new ones. */
  readonly #stopping = new AbortController();
  readonly #logLimit: LogLimit;
  /** Why the last attempt failed: another reason is logged at once. */
  #reason = '';
  /** Whether the configured cluster must be called before the target of the next request. */
  #isConfiguredNext: boolean;

  constructor(host: JoiningHost, phases: Phases) {
    this.#host = host;
    this.#phases = phases;
    this.#logLimit = new LogLimit(host);
    this.#isConfiguredNext = this.#hasConfigured;
  }

  get #hasConfigured(): boolean {
    return this.#host.config.retry_join.length > 0;
  }

  /** The join in progress, or waiting for the shares of the seal. */
  get #joining(): Joining | undefined {
    const { present } = this.#phases;
    return present.kind === 'joining' ? present.joining : undefined;
  }

  get #isMember(): boolean {
    return this.#phases.member !== undefined;
  }

  /**
   * Runs the attempt of a request, and no other attempt beside it.
   * @param what - past participle for the refusal of a second attempt, e.g. `initialized`
   * @throws StoreError `busy`, `stopped`
   */
  async exclusively<T>(what: string, task: () => Promise<T>): Promise<T> {
    await this.#round;
    return this.#alone(what, task);
  }

  /** Runs one attempt at a time: two concurrent attempts would both create a node in one directory. */
  async #alone<T>(what: string, task: () => Promise<T>): Promise<T> {
    if (this.#attempt !== undefined) throw new StoreError('busy', `this node is already being ${this.#attempt.what}`);
    this.#stopping.signal.throwIfAborted();
    const ended = task();
    this.#attempt = { what, ended };
    try {
      return await ended;
    } finally {
      this.#attempt = undefined;
    }
  }

  /** Starts a node that was created here but failed to start, for example because its cluster port was in use. */
  async resume(): Promise<void> {
    if (this.#isMember || this.#attempt !== undefined || !(await this.#host.directory.holdsNode())) return;
    await this.#alone('started', async () => {
      if (!this.#isMember) await this.#phases.open();
    });
  }

  /**
   * Joins the cluster of the first of these addresses that admits this node. The caller has no token, so it gets the same error for every
   * failure; the log has the reason. The configured cluster is called first, after each request: otherwise callers could keep this node at
   * addresses that do not answer. The request is ignored while a join of the configured cluster waits for shares.
   * @returns whether the node is a member now. With a Shamir seal the last share completes the join; with `retry` it is repeated in the
   * background.
   * @throws ClusterError, StoreError
   */
  async join(request: JoinTarget): Promise<{ readonly joined: boolean }> {
    await this.#round;
    while (this.#isConfiguredNext && this.#mayRetry) await this.retry();
    if (this.#joining !== undefined && this.#isConfigured) {
      this.#host.log.warn('a join request was ignored: this node is joining the cluster that retry_join names');
      return { joined: false };
    }
    try {
      return await this.#join(request, { retry: request.retry === true });
    } catch (error) {
      throw this.#callerError(error);
    }
  }

  /** @param retry - true makes this the target of retries, false ends retries; when absent, the retries stay as they are */
  #join(
    request: JoinTarget,
    { retry, isConfigured = false }: { readonly retry?: boolean; readonly isConfigured?: boolean } = {},
  ): Promise<{ readonly joined: boolean }> {
    return this.#alone('joined to a cluster', async () => {
      if (this.#isMember) return { joined: true }; // since the request was checked: it has waited for another attempt
      if (!isConfigured) this.#isConfiguredNext = this.#hasConfigured;
      if (retry !== undefined) this.#retryTarget = retry ? request : undefined;
      this.#phases.leave();
      try {
        return await this.#begin(await this.#prepare(request), isConfigured);
      } catch (error) {
        this.#phases.leave();
        if (error instanceof ClusterError && error.code === 'join_malformed') this.#retryTarget = undefined;
        if (this.#retryTarget === undefined || !(error instanceof ClusterError)) throw error;
        this.#logRetry(error);
        return { joined: false };
      }
    });
  }

  async #prepare(target: JoinTarget): Promise<Joining> {
    const { opened, config, api } = this.#host;
    this.#candidate ??= await newCandidate();
    const { signal: stopping } = this.#stopping;
    return Joining.prepare({ seal: opened.seal, config, apiAddress: api.url, candidate: this.#candidate, stopping, ...target });
  }

  /** Completes the join, or waits for the shares that it needs. */
  async #begin(joining: Joining, isConfigured: boolean): Promise<{ readonly joined: boolean }> {
    this.#phases.join(joining);
    this.#isConfigured = isConfigured;
    if (!joining.ready) return { joined: false };
    await this.#complete(joining);
    return { joined: true };
  }

  /**
   * Accepts a share of the cluster that this node is joining; returns false when the node is not joining a cluster.
   * @throws BarrierError, ClusterError, StoreError
   */
  async addShare(share: Uint8Array): Promise<boolean> {
    await this.#round;
    const joining = this.#joining;
    if (joining === undefined) return false;
    await this.#alone('joined to a cluster', async () => {
      try {
        if (joining.addShare(share)) await this.#complete(joining);
      } catch (error) {
        // These shares do not open the seal. The operators have to give the shares of the seal that the cluster has then.
        if (error instanceof ClusterError && isFinal(error)) this.#phases.leave();
        throw this.#callerError(error);
      }
    });
    return true;
  }

  /** Tries again to start or to join; called every second while this node does not belong to a cluster. Never rejects. */
  retry(): Promise<void> {
    this.#round = this.#retrying();
    return this.#round;
  }

  async #retryOnce(): Promise<void> {
    if (!this.#mayRetry) return;
    try {
      if (this.#joining !== undefined) return await this.#preferConfigured();
      await this.resume();
      // The configured target comes first: a caller without a token may have named the other, which is tried only after a failure.
      const configured = configuredTarget(this.#host.config);
      for (const target of [configured, this.#retryTarget])
        if (target !== undefined && !this.#isMember && this.#joining === undefined)
          await this.#join(target, { isConfigured: target === configured });
    } catch (error) {
      this.#logRetry(error);
    } finally {
      this.#isConfiguredNext = false;
    }
  }

  get #mayRetry(): boolean {
    return this.#attempt === undefined && !this.#stopping.signal.aborted && this.#host.api.isListening;
  }

  /**
   * Replaces a requested join by a join of the configured cluster, as soon as that cluster responds. The request may come from a caller
   * without a token, who could otherwise keep this node waiting for the shares of another cluster. Until the configured cluster responds,
   * the requested join stays.
   */
  async #preferConfigured(): Promise<void> {
    const target = configuredTarget(this.#host.config);
    if (this.#isConfigured || target === undefined || performance.now() - this.#preferredMs < preferMs) return;
    this.#preferredMs = performance.now();
    const joining = await this.#prepare(target);
    try {
      await this.#alone('joined to a cluster', async () => {
        if (this.#isMember) return;
        await this.#begin(joining, true);
      });
    } finally {
      if (this.#joining !== joining) joining.close();
    }
  }

  /** Ends the attempt in progress, and refuses new ones. */
  close(): void {
    this.#stopping.abort(new StoreError('stopped', 'this node is stopping'));
  }

  /** Resolves when no attempt is in progress; never rejects. */
  async ended(): Promise<void> {
    await this.#attempt?.ended.catch(() => undefined);
  }

  /** Completes the join with the seal's key or shares; the node unseals with them once it has the cluster's records. */
  async #complete(joining: Joining): Promise<void> {
    const { directory, log } = this.#host;
    const { clusterId, nodeId, identity } = await joining.complete().catch((error: unknown) => {
      // A refused id may not be used again. An attempt without a response may have been admitted, and is repeated with the same id.
      if (!(error instanceof ClusterError && error.code === 'leader_unavailable')) this.#candidate = undefined;
      throw error;
    });
    this.#candidate = undefined;
    await writeIdentity(directory.path, identity);
    await directory.joinCluster({ clusterId, nodeId });
    try {
      await this.#unseal(await this.#phases.open(joining), joining);
    } finally {
      this.#phases.leave();
      joining.close();
    }
    log.info({ cluster: clusterId }, 'this node has joined the cluster');
  }

  /**
   * Unseals after a join. The node is a member even if the shares of its join no longer open the cluster's seal; then it waits for other
   * shares.
   */
  async #unseal({ barrier, services }: Member, joining: Joining): Promise<void> {
    try {
      await joining.unseal(barrier);
      await services.loaded;
    } catch (error) {
      this.#stopping.signal.throwIfAborted();
      this.#host.log.warn(
        { reason: error instanceof Error ? error.message : String(error) },
        'this node has joined, but the shares given for the join do not unseal it: give it the current shares',
      );
    }
  }

  /** Returns the error for a caller without a token, which must not learn whether and how an address responded. */
  #callerError(error: unknown): unknown {
    if (!(error instanceof ClusterError) || isOfCaller(error)) return error;
    this.#host.log.warn({ reason: error.message }, 'this node could not join a cluster');
    return new ClusterError('leader_unavailable', 'this node could not join: its log says why');
  }

  #logRetry(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    if (reason !== this.#reason) this.#logLimit.ended('join');
    this.#reason = reason;
    this.#logLimit.write('info', 'join', { reason }, 'this node has not joined a cluster yet; it retries every second');
  }
}

/** The error comes from the request or from this node, not from an address that was called. */
const isOfCaller = ({ code }: ClusterError): boolean => code === 'join_malformed' || code === 'seal_changed';

const isFinal = ({ code }: ClusterError): boolean => code === 'seal_changed' || code === 'leader_untrusted';
