import type { CommonAmount } from './common-amount.ts';

/** A limit as one thread enforces it, in places or bytes. */
export interface ThreadLimit {
  /** Amount that only this thread may take. */
  readonly own: number;
  /** Amount that one caller may take of it. */
  readonly ownPerCaller: number;
  /** Amount that the threads share; absent if there is only one thread. */
  readonly common?: CommonAmount;
}

/** Returns the limit of a node with one thread. @param callerPart - part of it that one caller may take, rounded up */
export const undivided = (own: number, callerPart: number): ThreadLimit => ({ own, ownPerCaller: Math.ceil(own * callerPart) });

/** The amount that one thread has taken: of its own, and of the common amount once its own is taken. */
export class TakenAmount {
  readonly #limit: ThreadLimit;
  #taken = 0;

  constructor(limit: ThreadLimit) {
    this.#limit = limit;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Amount that this thread may take while no other thread takes any. */
  get max(): number {
    return this.#limit.own + (this.#limit.common?.max ?? 0);
  }

  fits(amount: number): boolean {
    const { own, common } = this.#limit;
    const beyond = excess(this.#taken, amount, own);
    return beyond === 0 || common?.fits(beyond) === true;
  }

  tryTake(amount: number): boolean {
    const { own, common } = this.#limit;
    const beyond = excess(this.#taken, amount, own);
    if (beyond > 0 && common?.tryTake(beyond) !== true) return false;
    this.#taken += amount;
    return true;
  }

  giveBack(amount: number): void {
    const { own, common } = this.#limit;
    this.#taken -= amount;
    const beyond = excess(this.#taken, amount, own);
    if (beyond > 0) common?.giveBack(beyond);
  }
}

/** The amounts that callers have taken on one thread. A caller also has a part of the common amount, which counts on all threads. */
export class CallerAmounts {
  readonly #limit: ThreadLimit;
  readonly #of = new Map<string, number>();

  constructor(limit: ThreadLimit) {
    this.#limit = limit;
  }

  /** Returns the amount on this thread. */
  of(caller: string): number {
    return this.#of.get(caller) ?? 0;
  }

  /** Returns whether the caller has taken nothing on this thread, and nothing of the common amount on any thread. */
  hasNone(caller: string): boolean {
    return this.of(caller) === 0 && (this.#limit.common?.countedTo(caller) ?? 0) === 0;
  }

  fits(caller: string, amount: number): boolean {
    const { ownPerCaller, common } = this.#limit;
    const beyond = excess(this.of(caller), amount, ownPerCaller);
    return beyond === 0 || common?.fits(beyond, caller) === true;
  }

  tryTake(caller: string, amount: number): boolean {
    const { ownPerCaller, common } = this.#limit;
    const before = this.of(caller);
    const beyond = excess(before, amount, ownPerCaller);
    if (beyond > 0 && common?.tryTake(beyond, caller) !== true) return false;
    this.#of.set(caller, before + amount);
    return true;
  }

  /** Takes an amount although it may be more than the caller's part. */
  take(caller: string, amount: number): void {
    const { ownPerCaller, common } = this.#limit;
    const before = this.of(caller);
    const beyond = excess(before, amount, ownPerCaller);
    if (beyond > 0) common?.take(beyond, caller);
    this.#of.set(caller, before + amount);
  }

  giveBack(caller: string, amount: number): void {
    const { ownPerCaller, common } = this.#limit;
    const left = this.of(caller) - amount;
    const beyond = excess(left, amount, ownPerCaller);
    if (beyond > 0) common?.giveBack(beyond, caller);
    if (left > 0) this.#of.set(caller, left);
    else this.#of.delete(caller);
  }
}

/** Returns how much of an amount that is added to `before` is beyond `own`. */
const excess = (before: number, amount: number, own: number): number => Math.max(0, before + amount - Math.max(own, before));
