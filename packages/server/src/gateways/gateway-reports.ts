import type { AnswersReport } from './messages.ts';

/** Number of answers after which a gateway reports. */
const answersMax = 512;

/** Collects the answers of a gateway for the metrics of the node. */
export class GatewayReports {
  readonly #send: (answers: AnswersReport, asked: number | undefined) => void;
  #operations: string[] = [];
  #ms: number[] = [];
  #statuses: number[] = [];
  #inFlight = 0;
  #passed = 0;

  constructor(send: (answers: AnswersReport, asked: number | undefined) => void) {
    this.#send = send;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Counts a request until the returned function is called. */
  readonly begun = (): (() => void) => {
    this.#inFlight += 1;
    return this.#ended;
  };

  readonly answered = (operation: string, ms: number, status: number): void => {
    this.#operations.push(operation);
    this.#ms.push(ms);
    this.#statuses.push(status);
    if (this.#ms.length >= answersMax) this.report();
  };

  /** Counts a request that is passed to the main thread. */
  passed(): void {
    this.#passed += 1;
  }

  /** Sends what was collected. @param asked - number of the question that this answers */
  report(asked?: number): void {
    const answers = { operations: this.#operations, ms: this.#ms, statuses: this.#statuses, passed: this.#passed };
    this.#passed = 0;
    this.#operations = [];
    this.#ms = [];
    this.#statuses = [];
    this.#send(answers, asked);
  }

  readonly #ended = (): void => {
    this.#inFlight -= 1;
  };
}
