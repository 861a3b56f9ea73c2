// An npm registry on loopback that offers the packages of a release and the installed packages of this checkout, so that a test installs
// the release without a network.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { root } from '../../scripts/release/project.ts';

interface Offered {
  readonly manifest: Readonly<Record<string, unknown>>;
  readonly archive: Buffer;
}

export class LocalRegistry {
  readonly #server: Server;
  /** Archives that exist so far: by path in node_modules or, for a release, by file. */
  readonly #made = new Map<string, Offered>();

  private constructor(released: readonly string[]) {
    for (const file of released) this.#made.set(file, { manifest: manifestIn(file), archive: readFileSync(file) });
    this.#server = createServer((req, res) => {
      const [name = '', file] = decodeURIComponent(req.url ?? '')
        .slice(1)
        .split('/-/');
      const paths = this.#pathsOf(name);
      if (paths.length === 0) res.writeHead(404).end('{}');
      else if (file === undefined) res.end(JSON.stringify(this.#document(name, paths)));
      else
        res.end(
          this.#offer(paths.find((path) => this.#offer(path).manifest['version'] === file.replace(/\.tgz$/, '')) ?? '').archive,
        );
    });
  }

  /** @param released - archives of packages, which the registry offers too */
  static async start(released: readonly string[]): Promise<LocalRegistry> {
    const registry = new LocalRegistry(released);
    await new Promise<void>((listening) => registry.#server.listen(0, '127.0.0.1', listening));
    return registry;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}/`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** The registry's document of a package: a version per installed copy. */
  #document(name: string, paths: readonly string[]): unknown {
    const versions = paths.map((path) => {
      const { manifest, archive } = this.#offer(path);
      const { version } = manifest;
      const integrity = `sha512-${createHash('sha512').update(archive).digest('base64')}`;
      return [version, { ...manifest, dist: { tarball: `${this.url}${name}/-/${version}.tgz`, integrity } }] as const;
    });
    return { name, 'dist-tags': { latest: versions[0]?.[0] }, versions: Object.fromEntries(versions) };
  }

  /** Returns where the copies of a package are: archives of the release, or folders of this checkout. */
  #pathsOf(name: string): string[] {
    const released = [...this.#made].filter(([path, { manifest }]) => path.endsWith('.tgz') && manifest['name'] === name);
    return released.length > 0 ? released.map(([path]) => path) : installedCopies(name);
  }

  #offer(path: string): Offered {
    const folder = join(root, path);
    const made = this.#made.get(path) ?? {
      manifest: JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')),
      archive: execFileSync(
        'tar',
        ['-C', folder, '--exclude=./node_modules', '--transform=s,^[.],package,', '--use-compress-program=gzip -1', '-c', '.'],
        {
          maxBuffer: 256 * 1024 * 1024,
        },
      ),
    };
    this.#made.set(path, made);
    return made;
  }
}

const lock: { packages: Record<string, { link?: true }> } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));

function installedCopies(name: string): string[] {
  return Object.entries(lock.packages)
    .filter(([path, { link }]) => path.endsWith(`node_modules/${name}`) && link !== true)
    .map(([path]) => path)
    .filter((path) => existsSync(join(root, path, 'package.json')));
}

const manifestIn = (file: string): Readonly<Record<string, unknown>> =>
  JSON.parse(execFileSync('tar', ['-xzOf', file, 'package/package.json'], { encoding: 'utf8' }));
