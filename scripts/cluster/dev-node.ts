// One node of `npm run cluster`: its process, which is started again when it dies, and the faults that a key press injects.
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { LinkProxy } from '../../test/cluster/harness/link-proxy.ts';

/** How long a dead node stays down, so that one can watch the other nodes without it. */
const downMs = 2000;
/** A process that ends sooner than this after its start counts as a failed start. */
const shortLifeMs = 5000;
const failedStartsMax = 3;
/** Delay of each sync of a slow disk. */
const slowSyncMs = 200;

export interface DevNodeOptions {
  readonly name: string;
  readonly address: string;
  /** Code of the terminal's color for the name; undefined without a terminal. */
  readonly color: number | undefined;
  /** Arguments for Node.js that run this node. */
  readonly command: readonly string[];
  readonly print: (line: string) => void;
  /** The node could not be started several times in a row. */
  readonly onFailed: () => void;
}

export class DevNode {
  readonly name: string;
  readonly address: string;
  /** The proxy in front of the cluster port; undefined where nodes cannot be disconnected. */
  proxy: LinkProxy | undefined;
  /** Called after each start and each end of the process. */
  onProcess: (isRunning: boolean) => void = () => undefined;
  readonly #options: DevNodeOptions;
  #child: ChildProcess | undefined;
  #tracer: ChildProcess | undefined;
  #restart: NodeJS.Timeout | undefined;
  #startedMs = 0;
  #failedStarts = 0;
  #hasRun = false;
  #isStopping = false;
  #isPaused = false;
  #isCutOff = false;

  constructor(options: DevNodeOptions) {
    this.#options = options;
    this.name = options.name;
    this.address = options.address;
  }

  /** Id of the running process. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  say(text: string): void {
    const { color, print } = this.#options;
    print(color === undefined ? `${this.name} │ ${text}` : `\u001b[${color}m${this.name} │\u001b[0m ${text}`);
  }

  /** Starts the process in its own process group: Ctrl-C reaches only this script, which sends the signal to the node once. */
  start(): void {
    this.#startedMs = performance.now();
    const child = spawn(process.execPath, ['--disable-sigusr1', '--max-semi-space-size=8', ...this.#options.command], {
      env: { MALLOC_ARENA_MAX: '2', ...process.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', (line) => this.say(line));
    // Its last lines have been printed when it is closed.
    child.on('close', (code, signal) => this.#ended(signal ?? `exit code ${code}`));
    this.onProcess(true);
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#restart);
    const [child, tracer] = [this.#child, this.#tracer];
    tracer?.kill('SIGINT');
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      const closed = new Promise((resolve) => child.once('close', resolve));
      child.kill('SIGTERM');
      child.kill('SIGCONT'); // a paused process ends only after it continues
      await closed;
    }
    await this.proxy?.close();
  }

  kill(): void {
    this.#child?.kill('SIGKILL');
  }

  /** Pauses the process, or lets it continue. */
  pause(): void {
    this.#isPaused = !this.#isPaused;
    this.#child?.kill(this.#isPaused ? 'SIGSTOP' : 'SIGCONT');
    this.say(this.#isPaused ? 'paused (SIGSTOP); press p to let it continue' : 'continues (SIGCONT)');
  }

  /** Disconnects the node from the other nodes, or connects it again. Clients still reach it. */
  cutOff(others: readonly DevNode[]): void {
    if (this.proxy === undefined) {
      this.say('cannot be cut off here: this needs Linux, and --load');
      return;
    }
    this.#isCutOff = !this.#isCutOff;
    for (const other of others) {
      const mode = this.#isCutOff || other.#isCutOff ? 'cut' : 'open';
      this.proxy.setMode(sourceOf(other), mode);
      other.proxy?.setMode(sourceOf(this), mode);
    }
    this.say(this.#isCutOff ? 'cut off from the other nodes; press c to connect it again' : 'connected again');
  }

  /** Delays each sync of the node's disk with strace, or ends that. */
  slowDisk(): void {
    if (this.#tracer !== undefined) {
      this.#tracer.kill('SIGINT');
      return;
    }
    const calls = 'fdatasync,fsync';
    const inject = ['-e', `trace=${calls}`, '-e', `inject=${calls}:delay_enter=${slowSyncMs * 1000}`];
    const tracer = spawn('strace', ['-f', '-p', String(this.pid), '-o', '/dev/null', ...inject], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#tracer = tracer;
    let isAttached = false;
    const lines = createInterface({ input: tracer.stderr });
    lines.on('line', (line) => {
      if (isAttached) return;
      isAttached = line.includes('attached');
      this.say(isAttached ? `each sync of its disk takes ${slowSyncMs} ms longer; press s to end this` : line);
    });
    tracer.on('error', () => {
      this.#tracer = undefined;
      this.say('its disk cannot be slowed: install strace');
    });
    tracer.on('exit', () => {
      this.#tracer = undefined;
      if (isAttached && !this.#isStopping) this.say('its disk is fast again');
    });
  }

  #ended(how: string): void {
    this.#child = undefined;
    this.#isPaused = false;
    if (this.#isStopping) return;
    this.onProcess(false);
    const failed = performance.now() - this.#startedMs < shortLifeMs && how !== 'SIGKILL';
    this.#failedStarts = failed ? this.#failedStarts + 1 : 0;
    // If the first start fails, the reason is permanent: a port in use, or a key that does not fit the data.
    if (this.#failedStarts >= (this.#hasRun ? failedStartsMax : 1)) {
      this.say(`ended by itself (${how})`);
      this.#options.onFailed();
      return;
    }
    this.#hasRun = true;
    this.say(`died (${how}); it starts again in ${downMs / 1000} s`);
    this.#restart = setTimeout(() => this.start(), downMs);
  }
}

/** The address from which a node calls the others: 127.0.0.2 for n1. Every loopback address works on Linux. */
export const sourceOf = ({ name }: Pick<DevNode, 'name'>): string => `127.0.0.${Number(name.slice(1)) + 1}`;
