import { AccessError } from '../values/errors.ts';

/**
 * Maximum number of logins that wait for servers outside the cluster, of all methods and for one server. Servers that hang block only their
 * own logins: both are below the limit on all logins, which is 64 by default.
 */
const [waitsMax, serverWaitsMax] = [48, 16];

/** The logins that wait for a server outside the cluster. All methods share the places. */
export class OutsideWaits {
  /** For each of them, the name of its server. */
  readonly #waiting: string[] = [];

  /**
   * Runs what waits for a server.
   * @param busy - message of the refusal
   * @throws AccessError `busy_logins`; whatever `wait` throws
   */
  async run<T>(server: string, busy: string, wait: () => Promise<T>): Promise<T> {
    const waiting = this.#waiting;
    if (waiting.length >= waitsMax || waiting.filter((one) => one === server).length >= serverWaitsMax)
      throw new AccessError('busy_logins', busy);
    waiting.push(server);
    try {
      return await wait();
    } finally {
      waiting.splice(waiting.indexOf(server), 1);
    }
  }
}
