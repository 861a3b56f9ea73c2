// One process of a real etcd. It needs Debian's etcd-server, or a binary that TEST_ETCD_BINARY names.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connectEtcd, type EtcdConnection } from '../src/client/connect-etcd.ts';

const binary = process.env['TEST_ETCD_BINARY'] ?? 'etcd';
const retryMs = 50;

export interface EtcdProcessOptions {
  /** Has the data and the log. */
  readonly folder: string;
  /** Added to the arguments that every member needs. */
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** A connection to this process. */
  readonly connection: EtcdConnection;
}

/** Can be killed, frozen, and started again on its data. */
export class EtcdProcess {
  readonly #options: EtcdProcessOptions;
  #child: ChildProcess | undefined;
  #isPaused = false;

  constructor(options: EtcdProcessOptions) {
    this.#options = options;
  }

  get dataFolder(): string {
    return join(this.#options.folder, 'data');
  }

  /** Id of the running process. @throws if it does not run */
  get pid(): number {
    const { pid } = this.#child ?? {};
    if (pid === undefined) throw new Error('this etcd does not run');
    return pid;
  }

  /** Whether the process exists and is not frozen. */
  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && !this.#isPaused;
  }

  get log(): string {
    return readFileSync(this.#logFile, 'utf8');
  }

  /** Starts the process. It serves when {@link serves} resolves. */
  async launch(): Promise<void> {
    const { args, env } = this.#options;
    const output = openSync(this.#logFile, 'a');
    const child = spawn(
      binary,
      ['--data-dir', this.dataFolder, '--logger', 'zap', '--log-outputs', 'stderr', '--log-level', 'warn', ...args],
      { stdio: ['ignore', 'ignore', output], env: { ...process.env, ...env } },
    );
    closeSync(output);
    this.#child = child;
    this.#isPaused = false;
    const failed = once(child, 'error').then(([error]) => Promise.reject(error));
    await Promise.race([once(child, 'spawn'), failed]);
    failed.catch(() => undefined);
  }

  /** Resolves when etcd answers a linearizable read, so it has a leader. @throws if the process ends before */
  async serves(): Promise<void> {
    for (;;) {
      const child = this.#child;
      if (child === undefined || child.exitCode !== null) throw new Error(`etcd has ended:\n${this.log}`);
      const etcd = connectEtcd(this.#options.connection);
      try {
        await etcd.range({ key: 'ready' });
        return;
      } catch {
        await delay(retryMs);
      } finally {
        etcd.close();
      }
    }
  }

  /** Ends the process as a crash would. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  /** Stops the process without ending it, as a suspended machine would. */
  pause(): void {
    this.#child?.kill('SIGSTOP');
    this.#isPaused = true;
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
    this.#isPaused = false;
  }

  get #logFile(): string {
    return join(this.#options.folder, 'log');
  }
}
