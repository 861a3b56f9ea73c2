// Runs the real command on a pseudo terminal, which `script` of util-linux makes.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { until } from '../cluster/harness/until.ts';
import { entry, nodeBinary } from '../process/live-server.ts';

export class PseudoTerminal {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #ended: Promise<number | null>;
  /** The whole output of the terminal, including the echo of typed characters. */
  shown = '';

  /** Starts `transitd` with the terminal as its standard streams. */
  constructor(args: readonly string[], env: Readonly<Record<string, string>>) {
    const command = [nodeBinary, entry, ...args].map((word) => `'${word}'`).join(' ');
    this.#child = spawn('script', ['--quiet', '--return', '--flush', '--command', command, '/dev/null'], {
      env: { PATH: process.env['PATH'], SHELL: '/bin/sh', TERM: 'xterm', ...env },
    });
    this.#child.stdin.on('error', () => undefined); // the command may end without reading its input
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.shown += text;
      });
    this.#ended = new Promise((resolve) => this.#child.on('close', resolve));
  }

  /** Waits until the terminal shows a text, then types an answer. */
  async answer(prompt: string, typed: string): Promise<void> {
    await until(`the prompt ${prompt}`, async () => this.shown.includes(prompt), { explain: () => this.shown });
    this.#child.stdin.write(typed);
  }

  /** Waits for the end of the command, and returns its exit code. */
  async end(): Promise<number | null> {
    const code = await this.#ended;
    this.#child.stdin.destroy();
    return code;
  }
}
