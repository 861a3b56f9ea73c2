// A `--dev` node that a test starts from an installed release.
import { type ChildProcess, spawn } from 'node:child_process';
import { expect } from 'chai';

export interface Start {
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

export class DevNode {
  readonly address: string;
  readonly token: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, address: string, token: string) {
    this.#child = child;
    this.address = address;
    this.token = token;
  }

  /** Starts a node on a free port and reads its welcome. @throws with its whole output if it ends before */
  static start({ command: [program = '', ...args], cwd, env }: Start): Promise<DevNode> {
    const listen = { TRANSITD_LISTEN_ADDRESS: '127.0.0.1:0', TRANSITD_TELEMETRY_ADDRESS: '127.0.0.1:0' };
    // A process group of its own: npx is not the server's process.
    const child = spawn(program, args, { cwd, env: { ...env, ...listen }, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    return new Promise((resolve, reject) => {
      let output = '';
      const read = (text: string): void => {
        output += text;
        const [, address, token] = /address +(http\S+)\s+root token +(\S+)\s/.exec(output) ?? [];
        if (address !== undefined && token !== undefined) resolve(new DevNode(child, address, token));
      };
      child.stdout.setEncoding('utf8').on('data', read);
      child.stderr.setEncoding('utf8').on('data', read);
      child.on('error', reject);
      child.on('close', (code) => reject(new Error(`the node ended with ${code}:\n${output}`)));
    });
  }

  /** Expects that the node serves the built console with its script. */
  async expectConsole(): Promise<void> {
    const page = await fetch(`${this.address}/ui/`);
    expect(await page.text()).to.include('<div id="app"></div>');
    const script = await fetch(`${this.address}/ui/index.js`);
    expect([page.status, script.status]).to.deep.equal([200, 200]);
  }

  /** Encrypts, decrypts, and expects the plaintext. Returns the ciphertext. */
  async roundTrip(): Promise<string> {
    const plaintext = Buffer.from('hello').toString('base64');
    const ciphertext = await this.#transit('encrypt/orders', { plaintext }, 'ciphertext');
    expect(await this.#transit('decrypt/orders', { ciphertext }, 'plaintext')).to.equal(plaintext);
    return ciphertext;
  }

  async #transit(path: string, body: unknown, field: string): Promise<string> {
    const headers = { 'X-Service-Token': this.token };
    const response = await fetch(`${this.address}/v1/transit/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    const text = await response.text();
    expect(response.status, text).to.equal(200);
    return JSON.parse(text).data[field];
  }

  /** Stops the node as Ctrl-C in a terminal does. */
  async stop(): Promise<void> {
    const { pid, exitCode } = this.#child;
    if (pid === undefined || exitCode !== null) return;
    const closed = new Promise((resolve) => this.#child.once('close', resolve));
    process.kill(-pid, 'SIGINT');
    await closed;
  }
}
