import { type Logger, reasonOf } from '@transitd/process';
import type { KeyValueMachine } from '@transitd/storage-fsm';

/** Minimum interval: the digest of all records is expensive to compute. */
const intervalMs = 60_000;

/**
 * Recomputes this node's state digest from its records after a state digest mismatch between nodes. A node whose records do not match its
 * own digest is damaged, and stops.
 */
export class DigestCheck {
  readonly #machine: KeyValueMachine;
  readonly #log: Logger;
  #isCoolingDown = false;

  constructor(machine: KeyValueMachine, log: Logger) {
    this.#machine = machine;
    this.#log = log;
  }

  async run(): Promise<void> {
    if (this.#isCoolingDown) return;
    this.#isCoolingDown = true;
    try {
      const { sound } = await this.#machine.checkDigest();
      this.#log.error(
        { sound },
        'state digest mismatch between nodes: this node has recomputed its digest. If sound is true, its own records are intact',
      );
    } catch (error) {
      this.#log.error({ reason: reasonOf(error) }, 'could not compute the state digest');
    } finally {
      setTimeout(() => {
        this.#isCoolingDown = false;
      }, intervalMs).unref();
    }
  }
}
