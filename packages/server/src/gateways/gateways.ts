import type { SecureContextOptions } from 'node:tls';
import type { RequestMetrics } from '@transitd/api';
import type { AuditDevices } from '@transitd/audit';
import type { GatewayHost, UsageLedger } from '@transitd/node';
import { endProcess, exitCode, type Logger, reasonOf } from '@transitd/process';
import { GatewayWorker, type GatewayWorkerParts } from './gateway-worker.ts';
import type { HeapGrowth } from './heap-growth.ts';
import type { FromGateway, GatewayData, GatewayListener, Question } from './messages.ts';
import { clearRow } from './node-limits.ts';
import type { ThreadLoad } from './thread-load.ts';

/** Pause before a thread that has ended is replaced, in milliseconds; doubled after each failure up to the maximum. */
const restartMs = { first: 100, max: 10_000 } as const;
/** After a thread has run for this long, the pause starts again at its shortest. */
const steadyMs = 60_000;
/** Pause before a gateway that has lost its session gets another one, in milliseconds. */
const renewMs = 100;
/** Interval between checks for lagging gateways, in milliseconds. */
const watchMs = 250;
/** How long gateways may take to report for the metrics, or to drain, in milliseconds. */
const reportMsMax = 200;
const drainMsMax = 6000;
/** How long a gateway may take to use other TLS contexts, in milliseconds. A thread that is still starting uses them from the first. */
const contextsMsMax = 5000;

export interface GatewaysParts extends Omit<GatewayData, 'memory' | 'row' | 'listeners'>, Pick<GatewayWorkerParts, 'script'> {
  readonly host: GatewayHost;
  readonly usage: Pick<UsageLedger, 'addFromThread'>;
  /** Number of gateways. */
  readonly count: number;
  readonly listeners: readonly GatewayListener[];
  readonly metrics: Pick<RequestMetrics, 'requestMs' | 'route' | 'responded'>;
  readonly audit: AuditDevices | undefined;
  readonly log: Logger;
  readonly heapGrowth: HeapGrowth;
}

interface Gateway {
  readonly worker: GatewayWorker;
  readonly startedMs: number;
  isLoading: boolean;
  /** It may have counted uses of keys since its last report: it serves. */
  mayCount: boolean;
}

/** Starts the gateway threads of a node, replaces those that end or lag, and relays between them and the main thread. */
export class Gateways {
  readonly #parts: GatewaysParts;
  readonly #rows = new Map<number, Gateway>();
  readonly #failures = new Map<number, number>();
  readonly #loads = new Map<number, ThreadLoad>();
  readonly #timers = new Set<NodeJS.Timeout>();
  /** Callbacks that wait for the answers to a question. */
  readonly #waiting = new Set<(row: number, asked: number | undefined | 'ended') => void>();
  #questions = 0;
  #listeners: readonly GatewayListener[];
  #isStopping = false;
  #replaced = 0;
  #answered = 0;
  #passed = 0;

  constructor(parts: GatewaysParts) {
    this.#parts = parts;
    this.#listeners = parts.listeners;
  }

  /** Starts the threads. Until they listen, the main thread serves alone. */
  start(): void {
    for (let row = 0; row < this.#parts.count; row++) this.#spawn(row);
    const watch = setInterval(() => this.#replaceLagging(), watchMs);
    watch.unref();
    this.#timers.add(watch);
  }

  /** The newest reports. */
  get loads(): readonly ThreadLoad[] {
    return [...this.#loads.values()];
  }

  get running(): number {
    return this.#rows.size;
  }

  /** Threads that ended and were replaced, since the start. */
  get replaced(): number {
    return this.#replaced;
  }

  /** Requests that gateways answered themselves, since the start. */
  get answered(): number {
    return this.#answered;
  }

  /** Requests that gateways passed to the main thread, since the start. */
  get passed(): number {
    return this.#passed;
  }

  /** Makes every gateway report its answers and the uses of keys. Returns whether all have done so, or have ended, in time. */
  report(withinMs: number = reportMsMax): Promise<boolean> {
    return this.#askAll({ kind: 'report' }, withinMs);
  }

  /**
   * Replaces the TLS contexts of all gateways, after the main thread has checked them. Resolves when every gateway uses them, or after a
   * timeout.
   * @param contexts - by the index of the listener
   */
  async replaceContexts(contexts: readonly (SecureContextOptions | undefined)[]): Promise<void> {
    this.#listeners = this.#listeners.map((listener, index) => ({ ...listener, tls: contexts[index] ?? listener.tls }));
    await this.#askAll({ kind: 'contexts', contexts }, contextsMsMax);
  }

  /** Stops accepting connections, and resolves when the requests in flight have their answers. */
  async drain(): Promise<void> {
    this.#isStopping = true;
    await this.#askAll({ kind: 'drain' }, drainMsMax);
  }

  /** Ends all threads, but waits for none longer than ten seconds. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const timer of this.#timers) clearTimeout(timer);
    await Promise.all([...this.#rows.values()].map(({ worker }) => worker.terminate()));
  }

  #spawn(row: number): void {
    const { config, limits, main, host, script, heapGrowth } = this.#parts;
    heapGrowth.threadLoads();
    const data: GatewayData = { config, limits, main, memory: host.memory, row, listeners: this.#listeners };
    const worker = new GatewayWorker({
      data,
      onMessage: (message) => this.#receive(row, message),
      onEnd: (error) => this.#ended(row, error),
      onStuck: () => this.#stuck(row),
      ...(script !== undefined && { script }),
    });
    this.#rows.set(row, { worker, startedMs: performance.now(), isLoading: true, mayCount: false });
  }

  #loaded(gateway: Gateway): void {
    if (gateway.isLoading) this.#parts.heapGrowth.threadLoaded();
    gateway.isLoading = false;
  }

  /** A thread that does not end may hold keys, so the process must end. If it is stopping, it first finishes what its node has to do. */
  #stuck(row: number): void {
    const { log } = this.#parts;
    if (this.#isStopping) {
      log.warn({ gateway: row + 1 }, 'a gateway thread was terminated and does not end: the stop continues without it');
      return;
    }
    log.fatal({ gateway: row + 1 }, 'a gateway thread was terminated and does not end: this process ends');
    endProcess(exitCode.invariant);
  }

  #ended(row: number, error: Error | undefined): void {
    const { host, limits, log, usage } = this.#parts;
    const gateway = this.#rows.get(row);
    if (gateway !== undefined) this.#loaded(gateway);
    if (gateway?.mayCount === true) usage.addFromThread([], { hasLost: true });
    host.detach(row);
    clearRow(limits, row);
    this.#rows.delete(row);
    this.#loads.delete(row);
    for (const notice of [...this.#waiting]) notice(row, 'ended');
    if (this.#isStopping || gateway === undefined) return;
    this.#replaced += 1;
    const ranMs = performance.now() - gateway.startedMs;
    const failures = ranMs > steadyMs ? 0 : (this.#failures.get(row) ?? 0);
    this.#failures.set(row, failures + 1);
    const pauseMs = Math.min(restartMs.max, restartMs.first * 2 ** failures);
    log.error(
      { gateway: row + 1, reason: error === undefined ? 'it was terminated' : reasonOf(error), pause_ms: pauseMs },
      'a gateway thread ended: its connections are closed, and another thread takes its place',
    );
    this.#later(pauseMs, () => this.#spawn(row));
  }

  #receive(row: number, message: FromGateway): void {
    const { log, audit, metrics, host, usage } = this.#parts;
    const gateway = this.#rows.get(row);
    if (gateway === undefined) return;
    switch (message.kind) {
      case 'listening':
        log.info({ gateway: row + 1 }, 'a gateway thread listens');
        this.#loaded(gateway);
        gateway.mayCount = true;
        host.attach(row, gateway.worker); // not earlier, because a thread that is still starting cannot drain
        break;
      case 'lost':
        log.info({ gateway: row + 1, reason: message.reason }, 'a gateway thread reads the records again');
        this.#later(renewMs, () => {
          if (this.#rows.get(row) === gateway) host.renew(row);
        });
        break;
      case 'warning':
        log.warn({ gateway: row + 1, warning: message.warning }, message.message);
        break;
      case 'report':
        this.#loads.set(row, message.load);
        this.#answered += message.answers.ms.length;
        this.#passed += message.answers.passed;
        usage.addFromThread(message.counted.uses, message.counted);
        for (const [i, ms] of message.answers.ms.entries()) {
          metrics.requestMs.observe(ms);
          metrics.route(message.answers.operations[i] ?? '').observe(ms);
          metrics.responded(message.answers.statuses[i] ?? 0);
        }
        break;
      case 'audit':
        audit
          ?.write(message.type, (device) => message.entries[device] ?? '')
          .then(
            () => gateway.worker.post({ kind: 'audited', id: message.id }),
            (error: unknown) => gateway.worker.post({ kind: 'audited', id: message.id, failure: reasonOf(error) }),
          );
        break;
      case 'unaudited':
        audit?.buildFailed(message.reason);
        break;
      case 'drained':
        gateway.mayCount = false;
        break;
      case 'contexts':
        break;
    }
    const asked = 'asked' in message ? message.asked : undefined;
    for (const notice of [...this.#waiting]) notice(row, asked);
  }

  #replaceLagging(): void {
    for (const row of this.#parts.host.lagging(performance.now())) {
      this.#parts.log.warn(
        { gateway: row + 1 },
        'a gateway thread did not follow the changes for more than a second: it is replaced',
      );
      void this.#rows.get(row)?.worker.terminate();
    }
  }

  /**
   * Asks every gateway. Returns whether each has answered this question, or has ended, within `withinMs`. A report that was on its way
   * when this asks is no answer: it lacks the uses since.
   */
  async #askAll(question: Question, withinMs: number): Promise<boolean> {
    const number = ++this.#questions;
    if (this.#rows.size === 0) return true;
    return new Promise<boolean>((resolve) => {
      const left = new Set(this.#rows.keys());
      const finish = (): void => {
        clearTimeout(late);
        this.#waiting.delete(notice);
        resolve(left.size === 0);
      };
      const notice = (row: number, asked: number | undefined | 'ended'): void => {
        if (asked === number || asked === 'ended') left.delete(row);
        if (left.size === 0) finish();
      };
      const late = setTimeout(finish, withinMs);
      this.#waiting.add(notice);
      for (const { worker } of this.#rows.values()) worker.post({ ...question, asked: number });
    });
  }

  #later(ms: number, task: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      if (!this.#isStopping) task();
    }, ms);
    this.#timers.add(timer);
  }
}
