import { dataKeyBytes } from './segment-cipher.ts';
import type { TransitCalls } from './transit.ts';

/** Limits after which a data key is replaced, and no longer kept. */
export interface DataKeyLimits {
  /** Messages encrypted with one data key; 1000 when absent. */
  readonly messages?: number;
  /** Bytes encrypted with one data key; 1 GiB when absent. */
  readonly bytes?: number;
  /** Milliseconds for which a data key is kept, for encryption and decryption; 5 minutes when absent. */
  readonly ageMs?: number;
  /** Data keys kept for decryption; 100 when absent, 0 to keep none. */
  readonly entries?: number;
}

export interface DataKey {
  readonly plaintext: Uint8Array<ArrayBuffer>;
  /** Encrypted by the service. */
  readonly wrapped: string;
}

/** The longest time that `setTimeout` takes. */
const longestTimerMs = 2 ** 31 - 1;

interface Current {
  readonly key: Promise<DataKey>;
  readonly sinceMs: number;
  messages: number;
  bytes: number;
}

/**
 * Data keys of one named key. Encryption uses a key for several messages, decryption keeps opened keys, both within limits: an attacker who
 * reads the memory of this process gets no more than the messages of the keys in it, and a revoked right ends with the age.
 */
export class DataKeyCache {
  readonly #transit: TransitCalls;
  readonly #name: string;
  readonly #context: { readonly context?: string };
  readonly #limits: Required<DataKeyLimits>;
  readonly #nowMs: () => number;
  #current: Current | undefined;
  readonly #opened = new Map<string, { readonly key: Promise<Uint8Array<ArrayBuffer>>; readonly sinceMs: number }>();
  #isTimerSet = false;

  /** @param context - base64, for a derived key @param nowMs - a clock that never goes back @throws TypeError for an invalid limit */
  constructor(
    transit: TransitCalls,
    name: string,
    {
      context,
      limits: { messages = 1000, bytes = 2 ** 30, ageMs = 300_000, entries = 100 } = {},
      nowMs = () => performance.now(),
    }: { readonly context?: string; readonly limits?: DataKeyLimits; readonly nowMs?: () => number } = {},
  ) {
    this.#transit = transit;
    this.#name = name;
    this.#context = context === undefined ? {} : { context };
    this.#limits = { messages, bytes, ageMs, entries };
    for (const [limit, value] of Object.entries(this.#limits))
      if (!(value >= 0)) throw new TypeError(`the limit ${limit} must be a number that is not negative`);
    this.#nowMs = nowMs;
  }

  /** Returns a data key for a message of this size. @throws RefusedError, UnansweredError */
  async forEncryption(bytes: number): Promise<DataKey> {
    const now = this.#nowMs();
    const present = this.#current;
    const { messages, bytes: bytesMax, ageMs } = this.#limits;
    const fits =
      present !== undefined && present.messages < messages && present.bytes + bytes <= bytesMax && now - present.sinceMs < ageMs;
    const current = fits ? present : { key: this.#create(), sinceMs: now, messages: 0, bytes: 0 };
    current.messages += 1;
    current.bytes += bytes;
    this.#current = current;
    this.#expireLater();
    try {
      return await current.key;
    } catch (error) {
      if (this.#current === current) this.#current = undefined; // the next message asks again
      throw error;
    }
  }

  /** Returns a data key for one stream, whose size is not known. It is not kept. @throws RefusedError, UnansweredError */
  forStream(): Promise<DataKey> {
    return this.#create();
  }

  /** Returns the plaintext of a wrapped data key, of any length. @throws RefusedError, UnansweredError */
  async forDecryption(wrapped: string): Promise<Uint8Array<ArrayBuffer>> {
    this.#expire();
    const known = this.#opened.get(wrapped);
    if (known !== undefined) return known.key;
    const opened = { key: this.#open(wrapped), sinceMs: this.#nowMs() };
    this.#opened.set(wrapped, opened);
    this.#expireLater();
    // The oldest entry is the first one.
    for (const text of this.#opened.keys()) {
      if (this.#opened.size <= this.#limits.entries) break;
      this.#opened.delete(text);
    }
    try {
      return await opened.key;
    } catch (error) {
      if (this.#opened.get(wrapped) === opened) this.#opened.delete(wrapped);
      throw error;
    }
  }

  /** Forgets all data keys, for example when the rights of this process change. */
  clear(): void {
    this.#current = undefined;
    this.#opened.clear();
  }

  /** Forgets the data keys that have reached their age. Callers that have got a key keep it until their message is done. */
  #expire(): void {
    const isOld = ({ sinceMs }: { readonly sinceMs: number }): boolean => this.#nowMs() - sinceMs >= this.#limits.ageMs;
    if (this.#current !== undefined && isOld(this.#current)) this.#current = undefined;
    for (const [text, opened] of this.#opened) if (isOld(opened)) this.#opened.delete(text);
  }

  /** Without a timer, an idle process would keep its last keys in memory. The timer does not keep the process running. */
  #expireLater(): void {
    if (this.#isTimerSet || this.#limits.ageMs > longestTimerMs) return;
    this.#isTimerSet = true;
    const timer: unknown = setTimeout(() => {
      this.#isTimerSet = false;
      this.#expire();
      if (this.#current !== undefined || this.#opened.size > 0) this.#expireLater();
    }, this.#limits.ageMs);
    // Timers of browsers are numbers.
    if (typeof timer === 'object') (timer as { readonly unref: () => void }).unref();
  }

  async #create(): Promise<DataKey> {
    const { plaintext = '', ciphertext } = (await this.#transit.datakey(this.#name, 'plaintext', { bits: 256, ...this.#context }))
      .data;
    const key = bytesOf(plaintext);
    if (key.length !== dataKeyBytes) throw new TypeError('the service returned no data key of 32 bytes');
    return { plaintext: key, wrapped: ciphertext };
  }

  async #open(wrapped: string): Promise<Uint8Array<ArrayBuffer>> {
    return bytesOf((await this.#transit.decrypt(this.#name, wrapped, this.#context)).data.plaintext);
  }
}

const bytesOf = (base64: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
