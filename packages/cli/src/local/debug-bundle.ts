import { writeFileSync } from 'node:fs';
import { arch, platform, release } from 'node:os';
import { type Path, RefusedError, type TransitdClient, UnansweredError } from '@transitd/client';
import { StartError, version } from '@transitd/process';

export interface DebugBundle {
  readonly format: 1;
  readonly created: string;
  readonly client: { readonly version: string; readonly node: string; readonly system: string };
  /** By name: the response, or the reason why it is missing. */
  readonly sections: Readonly<Record<string, { readonly answer: unknown } | { readonly error: string }>>;
}

/** Paths whose responses contain no secret: no tokens, accessors, key names or policies. */
const paths: Readonly<Record<string, Path>> = {
  seal_status: 'sys/seal-status',
  leader: 'sys/leader',
  ha_status: 'sys/ha-status',
  host_info: 'sys/host-info',
  configuration: 'sys/config/state/sanitized',
  raft_configuration: 'sys/storage/raft/configuration',
  autopilot_state: 'sys/storage/raft/autopilot/state',
  autopilot_configuration: 'sys/storage/raft/autopilot/configuration',
  authority: 'sys/storage/raft/authority',
  barrier_key: 'sys/key-status',
  metrics: 'sys/metrics',
};

/** Asks the first node for each section. A section that the token may not read becomes an error, and the others are still collected. */
export async function collect(client: TransitdClient): Promise<DebugBundle> {
  const sections: Record<string, DebugBundle['sections'][string]> = { health: await section(() => client.sys.health()) };
  for (const [name, path] of Object.entries(paths))
    sections[name] = await section(() =>
      client.request('GET', path, undefined, name === 'metrics' ? { query: { format: 'prometheus' } } : {}),
    );
  return {
    format: 1,
    created: new Date().toISOString(),
    client: { version, node: process.version, system: `${platform()} ${release()} ${arch()}` },
    sections,
  };
}

async function section(ask: () => Promise<unknown>): Promise<DebugBundle['sections'][string]> {
  try {
    return { answer: await ask() };
  } catch (error) {
    if (error instanceof RefusedError) return { error: `refused with ${error.status}: ${error.message}` };
    if (error instanceof UnansweredError) return { error: error.message };
    throw error;
  }
}

/** Creates the file, readable by its owner only: addresses and members are not for everybody. @throws StartError */
export function writeBundle(file: string, bundle: DebugBundle): void {
  try {
    writeFileSync(file, `${JSON.stringify(bundle, null, 1)}\n`, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new StartError(
      code === 'EEXIST' ? `${file} already exists and is not overwritten` : `${file} cannot be written: ${code}`,
    );
  }
}
