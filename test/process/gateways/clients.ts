import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { entry, type LiveServer, type Workbench } from '../live-server.ts';
import { allChanges, type Changes } from './changes.ts';
import { Connection, unlessUnknown, untilKnown } from './connection.ts';

/** Connections to each node by the clients that check. With two gateways, all are on one thread in only one of 200,000 runs. */
const connectionsCount = 12;
/** Connections to each node that keep all threads busy with reads of a key that is rotated all the time. */
const readersCount = 6;

/** Nodes of one cluster whose threads must all obey a change once it is answered. */
export interface Served {
  readonly urls: readonly string[];
  readonly rootToken: string;
  /** @see Connection */
  readonly isPatient?: boolean;
}

/** Of attempts at one change, each with records of its own: the next one follows an unknown outcome. */
const attemptsMax = 10;

export interface GatewayNode extends Served {
  readonly server: LiveServer;
  readonly unsealKey: string;
  readonly dataDir: string;
}

const plainListener = { address: '127.0.0.1:0', tls_disable: true };

/**
 * Starts an initialized node with two gateways and the records that the changes use.
 * @param program - the file that starts it, by default of this release
 */
export async function startNode(
  bench: Workbench,
  program = entry,
  {
    folder = bench.folder(),
    listeners = [plainListener],
    more = {},
    env = {},
  }: {
    readonly folder?: string;
    readonly listeners?: readonly object[];
    readonly more?: object;
    readonly env?: Readonly<Record<string, string>>;
  } = {},
): Promise<GatewayNode> {
  const dataDir = join(folder, 'data');
  const configFile = join(folder, 'transitd.json');
  writeFileSync(configFile, JSON.stringify({ node_id: 'n1', data_dir: dataDir, listeners, workers: 2, ...more }));
  const server = await bench.start({ dataDir: folder, command: ['server', '--config', configFile], program, env });
  for (const gateway of [1, 2]) await server.log(new RegExp(`"gateway":${gateway},"msg":"a gateway thread listens"`));
  const operator = new Connection(server.url, '');
  const { text } = await operator.call('PUT', 'sys/init', { secret_shares: 1, secret_threshold: 1 });
  server.secrets.learn(text);
  const {
    root_token: rootToken,
    keys_base64: [unsealKey],
  } = JSON.parse(text);
  await operator.data('PUT', 'sys/unseal', { key: unsealKey });
  operator.close();
  await prepare(new Connection(server.url, rootToken));
  return { server, urls: [server.url], rootToken, unsealKey, dataDir };
}

/** Creates the records that the changes use, and closes the connection. */
export async function prepare(admin: Connection): Promise<void> {
  for (const name of ['shared', 'hot']) await untilKnown(() => admin.data('POST', `transit/keys/${name}`));
  const policy = 'path "transit/encrypt/*" { capabilities = ["update"] }';
  await untilKnown(() => admin.data('POST', 'sys/policies/acl/user', { policy }));
  admin.close();
}

/** Returns the requests that gateways have answered themselves. */
export const answeredByGateways = (node: Pick<GatewayNode, 'server'>): Promise<number> => ofGateways(node, 'answered');

/** Returns the requests that gateways have answered themselves, or passed on to the main thread. */
export async function ofGateways({ server }: Pick<GatewayNode, 'server'>, kind: 'answered' | 'passed'): Promise<number> {
  const address = /"telemetry":"(http[^"]+)"/.exec(server.stderr)?.[1];
  const page = await (await fetch(`${address}/metrics`)).text();
  return Number(new RegExp(`^svc_core_gateway_requests\\{kind="${kind}"\\} (\\d+)$`, 'm').exec(page)?.[1]);
}

interface Rounds {
  readonly rounds: number;
  readonly only?: readonly string[];
  /** Ends after the first round with a contradiction. */
  readonly untilFound?: boolean;
}

/**
 * Makes the changes, through one node after the other, and checks after each answer that no request on any connection misses it.
 * Meanwhile other clients read a key that is rotated all the time, and check that its version never goes back.
 * @returns the contradictions
 */
export async function contradictions(
  { urls, rootToken, isPatient = false }: Served,
  { rounds, only = Object.keys(allChanges), untilFound = false }: Rounds,
): Promise<readonly string[]> {
  const found: string[] = [];
  const connect = (count: number): Connection[] =>
    urls.flatMap((url) => Array.from({ length: count }, () => new Connection(url, rootToken, { isPatient })));
  const [connections, readers, admins, [rotator]] = [connect(connectionsCount), connect(readersCount), connect(1), connect(1)];
  if (rotator === undefined) throw new Error('no node');
  const ends = new AbortController();
  const hot = { answered: 1 };
  const rotate = async (): Promise<void> => {
    while (!ends.signal.aborted)
      if ((await unlessUnknown(rotator.data('POST', 'transit/keys/hot/rotate'))) !== undefined) hot.answered += 1;
  };
  const read = async (reader: Connection): Promise<void> => {
    const body = { plaintext: randomBytes(32).toString('base64') };
    while (!ends.signal.aborted) {
      const { answered } = hot;
      const { key_version: seen } = (await unlessUnknown(reader.data('POST', 'transit/encrypt/hot', body))) ?? {};
      if (seen !== undefined && Number(seen) < answered)
        found.push(`a key that is rotated all the time: version ${seen} after ${answered}`);
    }
  };
  const background = Promise.all([rotate(), ...readers.map(read)]);
  background.catch(() => undefined); // thrown below
  /** Returns whether every outcome was known. */
  const check = async (name: string, changes: Changes, admin: Connection, attempt: string): Promise<true | undefined> => {
    for await (const { each, atEnd } of changes(admin, attempt)) {
      const results = [...(await Promise.all(connections.map(each))), atEnd?.()];
      for (const result of results) if (result !== undefined) found.push(`${name}: ${result}`);
    }
    return true;
  };
  const checkInRound = async (name: string, changes: Changes, round: number): Promise<void> => {
    const admin = admins[round % admins.length] ?? rotator;
    for (let attempt = 0; attempt < attemptsMax; attempt++)
      if (await unlessUnknown(check(name, changes, admin, `${round}-${attempt}`))) return;
    throw new Error(`${name}: no outcome was known in ${attemptsMax} attempts`);
  };
  try {
    for (let round = 0; round < rounds && !(untilFound && found.length > 0); round++)
      for (const name of only) {
        const changes = allChanges[name];
        if (changes !== undefined) await checkInRound(name, changes, round);
      }
  } finally {
    ends.abort();
    await background;
    for (const connection of [rotator, ...admins, ...readers, ...connections]) connection.close();
  }
  return found;
}
