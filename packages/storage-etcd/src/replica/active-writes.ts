import { StoreError } from '@transitd/storage-fsm';
import { whileActive } from '../commit/plan.ts';
import type { Keys } from '../copy/keys.ts';
import { type Etcd, type EtcdCompare, EtcdError, type EtcdOperation, type EtcdTxn, type EtcdTxnAnswer } from '../etcd.ts';
import { type ActiveRole, notActive } from './active-role.ts';
import type { StateFeed } from './state-feed.ts';

export interface ActiveWritesParts {
  readonly etcd: Etcd;
  readonly keys: Keys;
  readonly feed: StateFeed;
  readonly role: ActiveRole;
  /** Longest wait for this node's watch. */
  readonly timeoutMs: number;
}

/** Sends the writes of the active node. Each compares the active key, so a node that was replaced writes nothing. */
export class ActiveWrites {
  readonly #parts: ActiveWritesParts;

  constructor(parts: ActiveWritesParts) {
    this.#parts = parts;
  }

  /** Sends one transaction. @returns an answer that has not `succeeded` if the active key has another revision @throws StoreError */
  async send(activeRevision: number, body: EtcdTxn): Promise<EtcdTxnAnswer> {
    const { etcd, keys, feed, role } = this.#parts;
    const { revision } = feed.copy;
    try {
      const answer = await etcd.txn(whileActive(keys, activeRevision, body));
      const isWritten = answer.succeeded && (isDone(answer) || body.failure.length > 0);
      if (isWritten && answer.revision <= revision) this.#restored(answer.revision);
      return answer;
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      if (error.kind === 'unknown') {
        role.suspect();
        throw new StoreError('outcome_unknown', 'etcd did not answer, and the transaction may still take effect', {
          cause: error,
        });
      }
      throw new StoreError(refusalOf(error), `etcd refused the transaction: ${error.message}`, { cause: error });
    }
  }

  /** The copy had this revision before the write: etcd was restored, so the copy does not show the state that the write met. */
  #restored(revision: number): never {
    this.#parts.feed.suspect();
    this.#parts.role.suspect();
    throw new StoreError('outcome_unknown', `etcd wrote at revision ${revision}, which this node has seen: it was restored`);
  }

  /** Resolves when the copy contains this revision. @throws StoreError `outcome_unknown` */
  async seen(revision: number, timeoutMs = this.#parts.timeoutMs): Promise<void> {
    const { feed, role } = this.#parts;
    try {
      await feed.reached(revision, timeoutMs);
    } catch (error) {
      role.suspect(); // the next commit must not be planned from a copy without this revision
      throw new StoreError('outcome_unknown', `etcd has revision ${revision}, but this node has not seen it`, { cause: error });
    }
  }

  /**
   * Carries out a write that may be repeated, and waits until the copy contains it. The comparisons protect it from a stale copy: it may
   * have been planned while this node had the role before, and another node was active since.
   * @throws StoreError; `busy` if a comparison fails. Then nothing was written, and the state is read again.
   */
  async write(success: readonly EtcdOperation[], compares: readonly EtcdCompare[] = []): Promise<void> {
    const activeRevision = await this.#parts.role.settledRevision();
    const answer = await this.send(activeRevision, { compares, success, failure: [] });
    if (!answer.succeeded) throw notActive();
    if (!isDone(answer)) {
      this.#parts.feed.suspect();
      throw new StoreError('busy', 'the state has changed, and nothing was written; try again');
    }
    await this.seen(answer.revision);
  }
}

/** Whether the comparisons of the transaction held, besides that of the active key. */
export const isDone = ({ answers }: EtcdTxnAnswer): boolean => answers.at(-1)?.txn?.succeeded === true;

const refusalOf = ({ message }: EtcdError): 'too_large' | 'busy' =>
  /too large|too many operations/.test(message) ? 'too_large' : 'busy';
