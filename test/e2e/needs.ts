// Requirements of the container tests, which .mocharc.json of this folder names.
import { execFileSync } from 'node:child_process';
import { hasPkcs11 } from '../../scripts/release/archive.ts';
import type { Platform } from '../../scripts/release/node-binary.ts';

/** The command for `docker compose`: the plugin, or docker-compose; undefined if neither is installed. */
export const compose: readonly string[] | undefined = [['docker', 'compose'], ['docker-compose']].find(
  ([program = '', ...args]) => works(program, [...args, 'version']),
);

/** Fails once with all that is missing, before the first test. */
export const mochaHooks = {
  beforeAll(): void {
    const lacks = missing();
    if (lacks.length > 0) throw new Error(lacks.join('; '));
  },
};

/** Missing requirements, one sentence each. */
function missing(): string[] {
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
  if (!hasPkcs11(`${process.platform}-${process.arch}` as Platform))
    lacks.push('the native part of PKCS#11, which the image of a release contains, is not built: run "npm run build:pkcs11"');
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
