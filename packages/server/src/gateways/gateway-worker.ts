import module from 'node:module';
import { dirname, extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { GatewaySession, GatewayThread } from '@transitd/node';
import type { FromGateway, GatewayData, ToGateway } from './messages.ts';

const gatewayThread = new URL(`../gateway-thread${extname(import.meta.url)}`, import.meta.url);

/** Limits of the heap of one thread, in megabytes. Bodies and keys are outside of it, and have limits of their own. */
const resourceLimits = { maxOldGenerationSizeMb: 1024, maxYoungGenerationSizeMb: 32 } as const;

const endMsMaxDefault = 10_000;

export interface GatewayWorkerParts {
  readonly data: GatewayData;
  readonly onMessage: (message: FromGateway) => void;
  /** Called once, when the thread has ended. @param error - absent if it was terminated */
  readonly onEnd: (error: Error | undefined) => void;
  /** Called if the thread was terminated and does not end in time. It may hold keys. */
  readonly onStuck: () => void;
  /** How long the thread may take to end after it was terminated, in milliseconds; 10,000 if absent. */
  readonly endMsMax?: number;
  /** The program of the thread, for tests. */
  readonly script?: URL;
}

/** One gateway thread. */
export class GatewayWorker implements GatewayThread {
  readonly #worker: Worker;
  readonly #onStuck: () => void;
  readonly #endMsMax: number;
  #error: Error | undefined;

  constructor({ data, onMessage, onEnd, onStuck, endMsMax, script }: GatewayWorkerParts) {
    this.#onStuck = onStuck;
    this.#endMsMax = endMsMax ?? endMsMaxDefault;
    const cache = module.getCompileCacheDir(); // of this version and these flags of V8, below the folder that the variable names
    const env = { ...process.env, ...(cache !== undefined && { NODE_COMPILE_CACHE: dirname(cache) }) };
    this.#worker = new Worker(script ?? gatewayThread, {
      workerData: data,
      resourceLimits,
      env,
      name: `gateway ${data.row + 1}`,
    });
    this.#worker.on('message', onMessage);
    this.#worker.on('error', (error) => {
      this.#error = error instanceof Error ? error : new Error(String(error));
    });
    this.#worker.once('exit', () => onEnd(this.#error));
  }

  post(message: ToGateway): void {
    this.#worker.postMessage(message);
  }

  open(session: GatewaySession): void {
    this.#worker.postMessage({ kind: 'session', session } satisfies ToGateway, [session.port]);
  }

  seal(): void {
    this.post({ kind: 'seal' });
  }

  /** Ends the thread. Resolves when it has ended, or when it is late and `onStuck` was called. */
  async terminate(): Promise<void> {
    const { promise: isLate, resolve } = Promise.withResolvers<void>();
    const late = setTimeout(() => {
      this.#onStuck();
      resolve();
    }, this.#endMsMax);
    await Promise.race([this.#worker.terminate(), isLate]);
    clearTimeout(late);
  }
}
