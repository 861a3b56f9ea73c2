import module from 'node:module';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { GatewaySession, GatewayThread } from '@transitd/node';
import { exitCode } from '@transitd/process';
import type { FromGateway, GatewayData, ToGateway } from './messages.ts';

const script = new URL(`../gateway-thread${extname(import.meta.url)}`, import.meta.url);

/** Limits of the heap of one thread, in megabytes. Bodies and keys are outside of it, and have limits of their own. */
const resourceLimits = { maxOldGenerationSizeMb: 1024, maxYoungGenerationSizeMb: 32 } as const;

/** How long a thread may take to end after it was terminated, in milliseconds. */
const endMsMax = 10_000;

export interface GatewayWorkerParts {
  readonly data: GatewayData;
  readonly onMessage: (message: FromGateway) => void;
  /** Called once, when the thread has ended. @param error - absent if it was terminated */
  readonly onEnd: (error: Error | undefined) => void;
  /** Called before the process ends, because the thread does not end. */
  readonly onStuck: () => void;
}

/** One gateway thread. */
export class GatewayWorker implements GatewayThread {
  readonly #worker: Worker;
  readonly #onStuck: () => void;
  #error: Error | undefined;

  constructor({ data, onMessage, onEnd, onStuck }: GatewayWorkerParts) {
    this.#onStuck = onStuck;
    const cache = module.getCompileCacheDir();
    const env = { ...process.env, ...(cache !== undefined && { NODE_COMPILE_CACHE: cache }) };
    this.#worker = new Worker(script, { workerData: data, resourceLimits, env, name: `gateway ${data.row + 1}` });
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

  /** Ends the thread. If the thread does not end in time, ends the process, because the thread may hold keys. */
  async terminate(): Promise<void> {
    const late = setTimeout(() => {
      this.#onStuck();
      process.exit(exitCode.invariant);
    }, endMsMax);
    await this.#worker.terminate();
    clearTimeout(late);
  }
}
