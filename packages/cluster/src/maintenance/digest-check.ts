import { type Logger, reasonOf } from '@transitd/process';
import type { KeyValueMachine } from '@transitd/storage-fsm';

/** Summing up all records is work: not more often than this. */
const checkAgainMs = 60_000;

/** Somebody's records are others: a node whose own sum does not hold any more is damaged, and ends. */
export class DigestCheck {
  readonly #machine: KeyValueMachine;
  readonly #log: Logger;
  #resting = false;

  constructor(machine: KeyValueMachine, log: Logger) {
    this.#machine = machine;
    this.#log = log;
  }

  async run(): Promise<void> {
    if (this.#resting) return;
    this.#resting = true;
    try {
      const { sound } = await this.#machine.checkDigest();
      this.#log.error({ sound }, 'nodes have different records at one index; this one has summed up its own');
    } catch (error) {
      this.#log.error({ reason: reasonOf(error) }, 'the own records could not be summed up');
    } finally {
      setTimeout(() => {
        this.#resting = false;
      }, checkAgainMs).unref();
    }
  }
}
