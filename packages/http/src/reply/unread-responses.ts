import type { ServerResponse } from 'node:http';

/** Responses up to this length are not counted: the limit of connections bounds their memory. */
export const smallResponseBytes = 64 * 1024;
const bytesMaxDefault = 128 * 1024 * 1024;

interface Caller {
  bytes: number;
  /** Responses with their lengths, the oldest first. */
  readonly responses: Map<ServerResponse, number>;
}

/**
 * Limits the memory of long responses that their callers have not read. The kernel takes only a part of such a response, and Node keeps the
 * rest. Above the limit the caller with the most unread bytes loses its oldest response: that connection is closed. So a caller that
 * requests many long responses and reads none displaces only its own.
 */
export class UnreadResponses {
  readonly #callers = new Map<string, Caller>();
  #bytesMax: number;
  #bytes = 0;
  #closed = 0;

  constructor(bytesMax = bytesMaxDefault) {
    this.#bytesMax = bytesMax;
  }

  /** Sets the limit of this thread. */
  limit(bytesMax: number): void {
    this.#bytesMax = bytesMax;
  }

  /** Bytes of the responses that are counted now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Responses whose connections were closed to make room, since the start. */
  get closed(): number {
    return this.#closed;
  }

  /** Counts a response until it is closed. The newest one is never closed to make room, so a single one may exceed the limit. */
  add(res: ServerResponse, caller: string, bytes: number): void {
    const own = this.#callers.get(caller) ?? { bytes: 0, responses: new Map() };
    own.responses.set(res, bytes);
    own.bytes += bytes;
    this.#callers.set(caller, own);
    this.#bytes += bytes;
    res.once('close', () => this.#forget(caller, res));
    while (this.#bytes > this.#bytesMax) if (!this.#closeOne(res)) return;
  }

  #closeOne(newest: ServerResponse): boolean {
    const most = [...this.#callers].reduce((one, other) => (other[1].bytes > one[1].bytes ? other : one));
    // A caller that has only the newest response loses nothing; then the first of the others does.
    for (const [caller, { responses }] of [most, ...this.#callers]) {
      const oldest = [...responses.keys()].find((res) => res !== newest);
      if (oldest === undefined) continue;
      this.#forget(caller, oldest);
      this.#closed += 1;
      oldest.destroy();
      return true;
    }
    return false;
  }

  #forget(caller: string, res: ServerResponse): void {
    const own = this.#callers.get(caller);
    const bytes = own?.responses.get(res);
    if (own === undefined || bytes === undefined) return;
    own.responses.delete(res);
    own.bytes -= bytes;
    this.#bytes -= bytes;
    if (own.responses.size === 0) this.#callers.delete(caller);
  }
}

/** The responses of this thread. */
export const unreadResponses = new UnreadResponses();
