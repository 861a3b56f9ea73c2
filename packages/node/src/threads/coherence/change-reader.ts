import type { Changes } from '@transitd/storage-fsm';
import { type ChangeNumber, type GatewayMessage, isAfter, next, type ReplyMessage } from './messages.ts';

interface ChangeReaderOptions {
  /** Returns the shared counter. */
  readonly counter: () => ChangeNumber;
  /** Takes the oldest message from the port; undefined if it is empty. */
  readonly receive: () => GatewayMessage | undefined;
  /** Number of the newest change when the main thread added this gateway. */
  readonly start: ChangeNumber;
  /** Reports changes to the watchers. They invalidate what they have cached, or mark it for a new read. */
  readonly onChanges: (changes: Changes) => void;
  readonly onReply: (reply: ReplyMessage) => void;
  /** Publishes how far this gateway has drained. */
  readonly onDrained: (number: ChangeNumber) => void;
}

/**
 * The gateway's view of the changes. {@link drain} compares the shared counter with what was drained, and takes the missing messages from
 * the port at once. A request drains when it begins and again after every wait, so it uses no value that was changed before.
 *
 * The main thread stops posting changes to a gateway that lags too far. The gateway notices by a gap in the numbers, or by an empty port,
 * and reports `everything`: its next reads show the state of the main thread, which includes all changes that the counter names.
 */
export class ChangeReader {
  readonly #options: ChangeReaderOptions;
  #drained: ChangeNumber;
  #isTaking = false;

  constructor(options: ChangeReaderOptions) {
    this.#options = options;
    this.#drained = options.start;
  }

  /** Number of the newest change that the watchers know. */
  get drained(): ChangeNumber {
    return this.#drained;
  }

  /** Reports all changes that were published before this call. Costs one read of the shared memory if there are none. */
  drain(): void {
    if (this.#options.counter() === this.#drained) return;
    for (const steps = this.draining(); steps.next().done !== true; );
  }

  /** The steps of {@link drain}, each with one access to the port or to the shared memory. The caller runs all of them. */
  *draining(): Generator<undefined, void> {
    yield;
    const upTo = this.#options.counter();
    while (isAfter(upTo, this.#drained)) {
      yield;
      const message = this.#options.receive();
      if (message === undefined) this.#skipTo(upTo);
      else this.take(message);
    }
  }

  /** Handles the oldest message of the port, which the caller has taken from it. */
  take(message: GatewayMessage): void {
    if (this.#isTaking) throw new Error('a handler of changes must not drain: the newer changes would be reported first');
    const { number } = message;
    if (message.kind === 'reply') {
      // A reply shows the state after all changes up to its number. The watchers must know them first.
      if (isAfter(number, this.#drained)) this.#skipTo(number);
      this.#options.onReply(message);
    } else if (number === next(this.#drained)) this.#report(message.changes, number);
    else if (isAfter(number, this.#drained)) this.#skipTo(number);
  }

  /** Reports that any record may have changed, because some changes up to `number` were not posted. */
  #skipTo(number: ChangeNumber): void {
    this.#report('everything', number);
  }

  #report(changes: Changes, number: ChangeNumber): void {
    this.#isTaking = true;
    try {
      this.#options.onChanges(changes);
    } finally {
      this.#isTaking = false;
    }
    this.#drained = number;
    this.#options.onDrained(number);
  }
}
