import type { LogIndex, Message, Term } from '../../types.ts';

interface Posted {
  readonly message: Message;
  /** The node's term when it posted the message; a pre-vote asks for the term after that. */
  readonly term: Term;
  readonly vouches: boolean;
}

/**
 * The messages of one batch, grouped by the write that they wait for. A message that vouches for stored state (a vote, an acknowledgement)
 * waits for the batch's write; every message waits until the term it carries is durable.
 */
export class Outbox {
  #posted: Posted[] = [];

  get isEmpty(): boolean {
    return this.#posted.length === 0;
  }

  post(message: Message, { term, vouches }: { readonly term: Term; readonly vouches: boolean }): void {
    this.#posted.push({ message, term, vouches });
  }

  take(durableTerm: Term): { readonly immediate: readonly Message[]; readonly afterPersist: readonly Message[] } {
    const posted = this.#posted;
    if (posted.length === 0) return { immediate: NONE, afterPersist: NONE };
    this.#posted = [];
    const waits = ({ term, vouches }: Posted): boolean => vouches || term > durableTerm;
    return {
      immediate: posted.filter((each) => !waits(each)).map(({ message }) => message),
      afterPersist: posted.filter(waits).map(({ message }) => message),
    };
  }

  /** Takes back the acknowledgements of entries from `index` on, which the log no longer has: they will never be stored. */
  withdraw(index: LogIndex): void {
    this.#posted = this.#posted.filter(({ message }) => !(message.type === 'AppendResp' && message.ok && message.match >= index));
  }

  clear(): void {
    this.#posted = [];
  }
}

const NONE: readonly Message[] = [];
