// Simulates several machines on one kernel. The commands of a page about several machines run on them unchanged, with their host names,
// ports and paths.
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { PageRun } from '../../docs/page.ts';
import { entry, nodeBinary, root } from '../../process/live-server.ts';

/** Folders that each machine has for itself. */
const ownFolders: readonly string[] = [
  '/root',
  '/etc/transitd',
  '/etc/haproxy',
  '/etc/systemd/system',
  '/var/lib',
  '/var/log',
  '/var/backups',
];

/**
 * Starts and stops programs like the service manager, from the unit of this repository or those in /etc/systemd/system. The tests run
 * without systemd as the first process.
 */
const systemctl = `#!/bin/bash
set -e
unit=\${!#}; unit=\${unit%.service}; pid=/var/lib/$unit.pid
command_of() { sed -e ':a;N;$!ba;s/\\\\\\n *//g' "$1" | sed -n 's/^ExecStart=//p' | sed 's/%%/%/g'; }
stop() { if [ -e $pid ]; then kill "$(cat $pid)"; while [ -e "/proc/$(cat $pid)" ]; do sleep 0.05; done; rm $pid; fi; }
begin() {
  case $unit in
    transitd) line=$(command_of '${join(root, 'deploy/systemd/transitd.service')}'); line=\${line#/usr/bin/} ;;
    haproxy) line='haproxy -db -f /etc/haproxy/haproxy.cfg' ;;
    *.timer) exec systemd-analyze verify /etc/systemd/system/$unit ;;
    *) file=/etc/systemd/system/$unit.service; exec env $(sed -n 's/^Environment=//p' $file) bash -c "$(command_of $file)" ;;
  esac
  setsid $line >> /var/log/$unit.out 2>&1 < /dev/null & echo $! > $pid
}
case $1 in
  enable | start) begin ;;
  restart) stop; begin ;;
  reload) kill -HUP "$(cat $pid)" ;;
  daemon-reload) ;;
  *) exit 64 ;;
esac
`;

/** Time limit of a block. */
const blockMs = 100_000;

export class Machines {
  readonly #folder: string;
  readonly #holder: ChildProcess;
  readonly #names = new Set<string>();
  #holderPid = 0;

  private constructor(folder: string, holder: ChildProcess) {
    this.#folder = folder;
    this.#holder = holder;
  }

  /** Creates the namespaces. @param hosts - host names of all machines @throws Error without root */
  static async start(hosts: readonly string[]): Promise<Machines> {
    if (process.getuid?.() !== 0) throw new Error('this test needs root: it creates namespaces');
    const folder = mkdtempSync(join(tmpdir(), 'transitd-machines-'));
    mkdirSync(join(folder, 'bin'));
    const programs = { transitd: `#!/bin/sh\nexec '${nodeBinary}' '${entry}' "$@"\n`, systemctl };
    for (const [name, text] of Object.entries(programs)) {
      writeFileSync(join(folder, 'bin', name), text);
      chmodSync(join(folder, 'bin', name), 0o755);
    }
    const names = hosts.map((host, at) => `127.0.1.${at + 1} ${host}\n`).join('');
    writeFileSync(join(folder, 'hosts'), `127.0.0.1 localhost\n${names}`);
    // An overlay cannot be stacked on the folders of another overlay, so its own folders are in a new file system.
    const setup = `
      ip link set lo up
      mount -t tmpfs tmpfs /mnt
      mkdir /mnt/upper /mnt/work
      mount -t overlay overlay -o lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work /etc
      mkdir -p /etc/transitd /etc/haproxy /etc/systemd/system /var/backups
      mount --bind ${folder}/hosts /etc/hosts
      getent group transitd > /dev/null || echo transitd:x:64999: >> /etc/group
      echo ready
      # Ends with the test, whose end closes the pipe. This shell also waits for orphans, so none stays in the process table.
      read -r`;
    const holder = spawn(
      'unshare',
      ['--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc', 'bash', '-ec', setup],
      {
        stdio: ['pipe', 'pipe', 'inherit'],
      },
    );
    const machines = new Machines(folder, holder);
    for await (const chunk of holder.stdout) if (String(chunk).includes('ready')) break;
    machines.#holderPid = Number(readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, 'utf8').trim());
    if (machines.#holderPid === 0) throw new Error('the namespaces could not be created');
    return machines;
  }

  /** A path on a machine, as this process sees it. */
  path(machine: string, path: string): string {
    const own = ownFolders.find((folder) => path.startsWith(folder)) ?? '';
    return join(this.#folder, machine, own, path.slice(own.length));
  }

  /** Copies files or folders from one machine to a folder of another. */
  copy(from: string, to: string, paths: readonly string[], folder = '/root'): void {
    this.#create(to);
    for (const path of paths)
      cpSync(this.path(from, path), this.path(to, join(folder, basename(path))), { recursive: true, preserveTimestamps: true });
  }

  /** Copies a file of this repository to a folder of a machine. */
  provide(machine: string, file: string, folder = '/root'): void {
    this.#create(machine);
    cpSync(join(root, file), this.path(machine, join(folder, basename(file))));
  }

  /** Runs a block in a shell of a machine, which ends at the first command that fails. Variables and functions stay for the next block. */
  async run(machine: string, block: string): Promise<PageRun> {
    this.#create(machine);
    const mounts = ownFolders.map((folder) => `mount --bind ${join(this.#folder, machine, folder)} ${folder}`).join('\n');
    const kept = '/var/lib/.shell';
    const script = `${mounts}\ncd /root; [ ! -e ${kept} ] || . ${kept}\n${block}\n{ export -p; declare -f; } > ${kept}`;
    const enter = ['-t', String(this.#holderPid), '--mount', '--net', '--pid', 'unshare', '--mount', 'bash', '-eo', 'pipefail'];
    const child = spawn('nsenter', [...enter, '-c', script], {
      env: { HOME: '/root', TRANSITD_WORKERS: '0', PATH: `${join(this.#folder, 'bin')}:${process.env['PATH']}` },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const texts = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (text: string) => {
        texts[name] += text;
      });
    // So that a block that waits forever shows where it waits.
    const code = await new Promise<number | null>((resolve) => {
      const timer = setTimeout(() => {
        child.kill('SIGKILL');
        resolve(null);
      }, blockMs);
      child.on('close', (ended) => {
        clearTimeout(timer);
        resolve(ended);
      });
    });
    return { code, ...texts };
  }

  /** The last lines of the output of all programs on all machines. */
  logs(): string {
    return [...this.#names]
      .flatMap((machine) => ['transitd', 'haproxy'].map((unit) => [machine, this.path(machine, `/var/log/${unit}.out`)] as const))
      .filter(([, file]) => existsSync(file))
      .map(([machine, file]) => `\n--- ${machine}\n${readFileSync(file, 'utf8').slice(-2000)}`)
      .join('');
  }

  /** Ends every process of the machines, and deletes their files. */
  async end(): Promise<void> {
    const ended = new Promise((resolve) => this.#holder.on('close', resolve));
    this.#holder.kill('SIGKILL');
    await ended;
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #create(machine: string): void {
    if (this.#names.has(machine)) return;
    this.#names.add(machine);
    for (const folder of ownFolders) mkdirSync(join(this.#folder, machine, folder), { recursive: true, mode: 0o755 });
  }
}
