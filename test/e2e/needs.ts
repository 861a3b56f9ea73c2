// Requirements of the container tests.
import { execFileSync } from 'node:child_process';

/** The command for `docker compose`: the plugin, or docker-compose; undefined if neither is installed. */
export const compose: readonly string[] | undefined = [['docker', 'compose'], ['docker-compose']].find(
  ([program = '', ...args]) => works(program, [...args, 'version']),
);

/** Missing requirements, one sentence each. */
export function missing(): string[] {
  const lacks: string[] = [];
  if (process.platform !== 'linux') lacks.push('the images are made from programs of this machine, which must run Linux');
  if (!works('docker', ['version']))
    lacks.push('no container engine answers ("docker version" fails); scripts/engine.sh starts one');
  if (compose === undefined) lacks.push('neither "docker compose" nor docker-compose is installed');
  for (const [program, version] of [
    ['haproxy', '-v'],
    ['prometheus', '--version'],
    ['promtool', '--version'],
  ] as const) {
    if (!works(program, [version])) lacks.push(`${program} is not installed: its image is made from the program of this machine`);
  }
  return lacks;
}

function works(program: string, args: readonly string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
