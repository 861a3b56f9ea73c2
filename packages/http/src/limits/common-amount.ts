/** Shared memory of the common part of one limit, for all threads of a node. */
export interface CommonMemory {
  /** Amount that all threads together may take. */
  readonly max: number;
  /** Amount of it that one caller may take. */
  readonly perCallerMax: number;
  /** Starting value of the hash of callers; random, so that nobody can choose callers with the same hash. */
  readonly seed: number;
  /** One row of {@link rowLength} numbers for each thread: the amount that it has taken, then that of each group of callers. */
  readonly taken: BigInt64Array<SharedArrayBuffer>;
  /** Whether a thread waits, and a number that rises when something is given back to those that wait. */
  readonly wake: Int32Array<SharedArrayBuffer>;
}

/** Callers are counted in groups by a hash. Two callers in one group share their part of the common amount, not their own parts. */
const groups = 256;
const rowLength = 1 + groups;
const [waits, freed] = [0, 1];

export const newCommonMemory = (limits: Pick<CommonMemory, 'max' | 'perCallerMax' | 'seed'>, threads: number): CommonMemory => ({
  ...limits,
  taken: new BigInt64Array(new SharedArrayBuffer(8 * rowLength * threads)),
  wake: new Int32Array(new SharedArrayBuffer(8)),
});

/**
 * The common part of a limit as one thread uses it: places or bytes that each thread may take when it has none left of its own. Each thread
 * writes only its own row and adds up all rows, so that a thread that ends at any point leaves nothing but its row.
 */
export class CommonAmount {
  readonly #memory: CommonMemory;
  readonly #row: number;
  #isWaiting = false;

  constructor(memory: CommonMemory, row: number) {
    this.#memory = memory;
    this.#row = row;
  }

  get max(): number {
    return this.#memory.max;
  }

  /** Amount that all threads have taken. */
  get taken(): number {
    return this.#sum(0);
  }

  /** Amount that all threads have counted to the caller, and to other callers of its group. */
  countedTo(caller: string): number {
    return this.#sum(this.#groupOf(caller));
  }

  // Each of the following methods takes an amount of all, or counts it to one caller, who may have a part of it.

  /** Returns whether an amount is left. Takes nothing, so it wakes no thread: see {@link whenFreed}. */
  fits(amount: number, caller?: string): boolean {
    return this.#fits(this.#at(caller), amount);
  }

  /** Takes an amount if it is left. Two threads that try at the same time may both fail where one would fit, never both succeed. */
  tryTake(amount: number, caller?: string): boolean {
    const at = this.#at(caller);
    if (!this.#fits(at, amount)) return false;
    this.#add(at, amount);
    if (this.#fits(at, 0)) return true;
    this.giveBack(amount, caller); // with a wake: another thread may have failed because of this attempt
    return false;
  }

  /** Takes an amount even if it is not left. */
  take(amount: number, caller?: string): void {
    this.#add(this.#at(caller), amount);
  }

  giveBack(amount: number, caller?: string): void {
    this.#add(this.#at(caller), -amount);
    this.#wake();
  }

  /**
   * Calls `retry` once, when a thread gives something back after this call. Does nothing while an earlier call waits. Something may have
   * been given back just before this call, so the caller also retries right after it.
   * @param retry - asks what fits before it takes more than one amount. If it took and gave back without success, it would wake itself and
   * the other threads that wait, over and over.
   */
  whenFreed(retry: () => void): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    const { wake } = this.#memory;
    const before = Atomics.load(wake, freed);
    Atomics.store(wake, waits, 1);
    const { async: isAsync, value } = Atomics.waitAsync(wake, freed, before);
    const woken = (): void => {
      this.#isWaiting = false;
      retry();
    };
    if (isAsync) void value.then(woken);
    else queueMicrotask(woken);
  }

  /** Gives back everything that the thread of this row has taken. The main thread calls it when the thread has ended. */
  clear(): void {
    for (let at = 0; at < rowLength; at += 1) Atomics.store(this.#memory.taken, this.#row * rowLength + at, 0n);
    this.#wake();
  }

  /** Returns the place in a row: of the amount of all, or of the caller's group. */
  #at(caller: string | undefined): number {
    return caller === undefined ? 0 : this.#groupOf(caller);
  }

  #fits(at: number, amount: number): boolean {
    const { max, perCallerMax } = this.#memory;
    return this.#sum(at) + amount <= (at === 0 ? max : perCallerMax);
  }

  #add(at: number, amount: number): void {
    Atomics.add(this.#memory.taken, this.#row * rowLength + at, BigInt(amount));
  }

  #wake(): void {
    const { wake } = this.#memory;
    if (Atomics.load(wake, waits) === 0 || Atomics.exchange(wake, waits, 0) === 0) return;
    Atomics.add(wake, freed, 1);
    Atomics.notify(wake, freed);
  }

  #sum(at: number): number {
    const { taken } = this.#memory;
    let sum = 0n;
    for (let i = at; i < taken.length; i += rowLength) sum += Atomics.load(taken, i);
    return Number(sum);
  }

  #groupOf(caller: string): number {
    let hash = this.#memory.seed;
    for (let i = 0; i < caller.length; i += 1) hash = Math.imul(hash ^ caller.charCodeAt(i), 0x01000193);
    return 1 + ((hash ^ (hash >>> 15)) & (groups - 1));
  }
}
