import { AccessError } from '../values/errors.ts';

/**
 * Maximum number of logins that wait for servers outside the cluster: of all methods, for one server, and of one caller for one server.
 * Servers that hang block only their own logins: all are below the limit on all logins, which is 64 by default.
 */
const [waitsMax, serverWaitsMax, callerWaitsMax] = [48, 16, 8];

/** What a login waits for. */
interface OutsideWait {
  /** Name of the server. */
  readonly server: string;
  /** Group of the caller's address. Absent if one answer of the server serves all callers. */
  readonly caller?: string;
}

/** The logins that wait for a server outside the cluster. All methods share the places. */
export class OutsideWaits {
  readonly #waiting = new Set<OutsideWait>();

  /**
   * Runs what waits for a server.
   * @param busy - message of the refusal
   * @throws AccessError `busy_logins`; whatever `wait` throws
   */
  async run<T>({ server, caller }: OutsideWait, busy: string, wait: () => Promise<T>): Promise<T> {
    const own: OutsideWait = { server, ...(caller !== undefined && { caller }) };
    const forServer = [...this.#waiting].filter((one) => one.server === server);
    const ofCaller = caller === undefined ? [] : forServer.filter((one) => one.caller === caller);
    if (this.#waiting.size >= waitsMax || forServer.length >= serverWaitsMax || ofCaller.length >= callerWaitsMax)
      throw new AccessError('busy_logins', busy);
    this.#waiting.add(own);
    try {
      return await wait();
    } finally {
      this.#waiting.delete(own);
    }
  }
}
