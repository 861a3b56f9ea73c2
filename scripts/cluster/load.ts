// A small load with live figures: encryption and decryption through all nodes, and one writer.
import { setTimeout as delay } from 'node:timers/promises';
import type { DevNode } from './dev-node.ts';

const workers = 4;
/** Pause of a worker between two requests. The load should be easy to watch, not fast. */
const pauseMs = 5;
const writePauseMs = 50;
/** A node that is paused does not answer; the request then goes to the next one. */
const answerMs = 2000;
const figuresMs = 1000;
const message = Buffer.from('hello').toString('base64');
const policy = 'path "transit/*" { capabilities = ["read"] }';

export interface LoadOptions {
  readonly nodes: readonly DevNode[];
  readonly token: string;
  /** Shows the figures of the last second. */
  readonly show: (figures: string) => void;
}

export class Load {
  readonly #options: LoadOptions;
  #isStopped = false;
  #tookMs: number[] = [];
  #writes = 0;
  #failed = 0;
  /** Decryptions that gave another plaintext, since the start. */
  #wrong = 0;
  #next = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#isStopped = true;
  }

  async run(): Promise<void> {
    const figures = setInterval(() => this.#show(), figuresMs);
    try {
      await Promise.all([this.#write(), ...Array.from({ length: workers }, () => this.#encryptAndDecrypt())]);
    } finally {
      clearInterval(figures);
    }
  }

  async #encryptAndDecrypt(): Promise<void> {
    while (!this.#isStopped) {
      const { ciphertext } = (await this.#ask('transit/encrypt/load', { plaintext: message })) ?? {};
      if (ciphertext !== undefined) {
        const opened = await this.#ask('transit/decrypt/load', { ciphertext });
        if (opened !== undefined && opened['plaintext'] !== message) this.#wrong += 1;
      }
      await delay(pauseMs);
    }
  }

  async #write(): Promise<void> {
    while (!this.#isStopped) {
      if ((await this.#ask('sys/policies/acl/load', { policy })) !== undefined) this.#writes += 1;
      await delay(writePauseMs);
    }
  }

  /** Sends a request to the next node, and to the one after it if that fails. Returns the data of the answer; undefined if all failed. */
  async #ask(path: string, body: object): Promise<Readonly<Record<string, string>> | undefined> {
    const { nodes } = this.#options;
    const startMs = performance.now();
    for (let tries = 0; tries < nodes.length; tries++) {
      const answer = await this.#askOne(nodes[this.#next++ % nodes.length], path, body);
      if (answer === undefined) continue;
      this.#tookMs.push(performance.now() - startMs);
      return answer;
    }
    this.#failed += 1;
    return undefined;
  }

  async #askOne(node: DevNode | undefined, path: string, body: object): Promise<Readonly<Record<string, string>> | undefined> {
    const { token } = this.#options;
    try {
      const response = await fetch(`${node?.address}/v1/${path}`, {
        method: 'POST',
        headers: { 'X-Service-Token': token },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(answerMs),
      });
      const text = await response.text();
      if (!response.ok) return undefined;
      return text === '' ? {} : JSON.parse(text).data;
    } catch {
      return undefined;
    }
  }

  #show(): void {
    const sorted = this.#tookMs.toSorted((a, b) => a - b);
    const quantile = (q: number): string => (sorted[Math.floor(q * sorted.length)] ?? 0).toFixed(1);
    const rates = `${sorted.length} requests/s (${this.#writes} writes), ${this.#failed} failed`;
    this.#options.show(
      `load │ ${rates}, half below ${quantile(0.5)} ms, 99 % below ${quantile(0.99)} ms, ${this.#wrong} wrong answers`,
    );
    [this.#tookMs, this.#writes, this.#failed] = [[], 0, 0];
  }
}
