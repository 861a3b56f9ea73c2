// The arrows between packages point inward. The arrows between folders of a package are in scripts/check/folder-arrows.ts.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect } from 'chai';
import { importsOf } from '../scripts/check/module.ts';

const packagesFolder = join(import.meta.dirname, '../packages');

/** The packages that each package may import. `server` is the composition root; nothing imports it. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  'raft-core': [],
  'raft-sim': ['raft-core'],
  health: [],
  client: [],
  console: [],
  'event-loop': [],
  'storage-fsm': ['raft-core'],
  'storage-etcd': ['process', 'raft-core', 'storage-fsm'],
  barrier: ['process', 'event-loop', 'storage-fsm'],
  'transit-engine': ['process', 'event-loop', 'storage-fsm'],
  access: ['process', 'event-loop', 'storage-fsm'],
  pkcs11: [],
  process: [],
  configuration: ['process', 'raft-core', 'barrier', 'access'],
  seals: ['http', 'process', 'configuration', 'barrier', 'pkcs11'],
  http: ['event-loop', 'process', 'storage-fsm'],
  cluster: [...['event-loop', 'http', 'process', 'configuration', 'raft-core', 'storage-fsm', 'barrier', 'access', 'health']],
  replication: ['cluster', 'http', 'process', 'event-loop', 'raft-core', 'storage-fsm', 'barrier', 'transit-engine'],
  audit: ['event-loop', 'http', 'process', 'configuration', 'storage-fsm', 'access'],
  'snapshot-archive': ['storage-fsm'],
  node: [
    ...['cluster', 'audit', 'snapshot-archive', 'process', 'configuration', 'storage-etcd'],
    ...[
      'event-loop',
      'raft-core',
      'health',
      'storage-fsm',
      'barrier',
      'transit-engine',
      'access',
      'pkcs11',
      'seals',
      'replication',
    ],
  ],
  api: [
    ...['node', 'cluster', 'audit', 'snapshot-archive', 'http', 'process', 'configuration'],
    ...['event-loop', 'raft-core', 'health', 'storage-fsm', 'replication', 'barrier', 'transit-engine', 'access'],
  ],
  cli: ['client', 'audit', 'snapshot-archive', 'http', 'process', 'configuration', 'seals', 'storage-fsm', 'access'],
  server: [
    ...['api', 'cli', 'node', 'audit', 'http', 'process', 'configuration', 'console'],
    ...['event-loop', 'raft-core', 'storage-fsm', 'replication', 'barrier', 'access'],
  ],
};

const sourcesOf = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && statSync(join(folder, name)).isFile())
    .map((name) => join(folder, name));

interface Import {
  readonly file: string;
  readonly from: string;
  readonly specifier: string;
}

const packages = readdirSync(packagesFolder).filter((name) => statSync(join(packagesFolder, name)).isDirectory());
const imports: Import[] = packages.flatMap((name) =>
  sourcesOf(join(packagesFolder, name, 'src')).flatMap((file) =>
    importsOf({ path: file, text: readFileSync(file, 'utf8') }).map(({ specifier }) => ({ file, from: name, specifier })),
  ),
);
const where = ({ file, specifier }: Import): string => `${relative(packagesFolder, file)} imports ${specifier}`;

describe('architecture', () => {
  it('knows every package', () => {
    expect(packages.toSorted()).to.deep.equal(Object.keys(allowed).toSorted());
  });

  it('reads every form of import', () => {
    const text = `import a from 'one';\nimport type { B } from "two";\nexport * from './three.ts';\nawait import('four');\nimport 'five';
      // import x from 'comment'\nimport {\n  c,\n} from 'six';\ntype Ends = Pick<Message, 'from' | 'to'>;\ntype D = import('seven').D;`;
    const imports = importsOf({ path: 'a.ts', text }).map(({ kind, specifier, line }) => `${kind} ${specifier} ${line}`);
    expect(imports).to.deep.equal([
      ...[
        'static one 1',
        'type two 2',
        'static ./three.ts 3',
        'dynamic four 4',
        'static five 5',
        'static six 9',
        'type seven 11',
      ],
    ]);
  });

  it('allows a package to import only packages further in', () => {
    const wrong = imports.filter(({ from, specifier }) => {
      const target = /^@transitd\/([^/]+)/.exec(specifier)?.[1];
      return target !== undefined && target !== from && !(allowed[from] ?? []).includes(target);
    });
    expect(wrong.map(where)).to.deep.equal([]);
  });

  it('keeps the simulator out of every package that a node runs', () => {
    expect(Object.keys(allowed).filter((name) => allowed[name]?.includes('raft-sim'))).to.deep.equal([]);
  });

  it('has no cycle between packages', () => {
    const visit = (name: string, path: readonly string[]): void => {
      expect(path, 'a cycle').not.to.include(name);
      for (const next of allowed[name] ?? []) visit(next, [...path, name]);
    };
    for (const name of packages) visit(name, []);
  });

  it('imports a package only through its declared entry', () => {
    const wrong = imports.filter(({ file, from, specifier }) => {
      if (specifier.startsWith('@transitd/')) return specifier.split('/').length > 2;
      if (!specifier.startsWith('.')) return false;
      return !resolve(dirname(file), specifier).startsWith(join(packagesFolder, from, 'src'));
    });
    expect(wrong.map(where)).to.deep.equal([]);
  });

  it('keeps the pure packages free of Node', () => {
    const pure = new Set(['raft-core', 'raft-sim', 'health', 'client', 'console']);
    const wrong = imports.filter(({ from, specifier }) => pure.has(from) && !/^(?:\.|@transitd\/)/.test(specifier));
    expect(wrong.map(where)).to.deep.equal([]);
  });

  it('keeps PKCS#11 libraries in one package', () => {
    const wrong = imports.filter(({ from, specifier }) => from !== 'pkcs11' && specifier === 'pkcs11js');
    expect(wrong.map(where)).to.deep.equal([]);
  });

  it('keeps sockets and HTTP out of consensus, storage, cryptography and access', () => {
    const network = /^(node:(http|https|http2|net|tls)|router|undici|ws)$/;
    const networked = new Set(['configuration', 'storage-etcd', 'seals', 'http', 'cluster', 'node', 'api', 'cli', 'server']);
    const nodeHttp = join(packagesFolder, 'process/src/node-http.ts'); // for the others
    const port = join(packagesFolder, 'replication/src/port/');
    const wrong = imports.filter(
      ({ file, from, specifier }) =>
        !networked.has(from) && network.test(specifier) && file !== nodeHttp && !file.startsWith(port),
    );
    expect(wrong.map(where)).to.deep.equal([]);
    const others = packages.filter((name) => name !== 'process' && !networked.has(name));
    const files = others.flatMap((name) => sourcesOf(join(packagesFolder, name, 'src')));
    expect(files.filter((file) => /\b(nodeHttp|getBuiltinModule)\b/.test(readFileSync(file, 'utf8')))).to.deep.equal([]);
  });
});
