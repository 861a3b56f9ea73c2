// @live
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Logger, StartError } from '@transitd/process';
import { expect } from 'chai';
import { ClusterPort } from '../src/cluster-port.ts';
import { MembershipList } from '../src/membership/membership-list.ts';
import { type ClusterHost, ForwardedRequests } from '../src/ports/cluster-host.ts';
import { MemberEvents } from '../src/ports/member-events.ts';
import { testCluster } from './credentials.ts';

describe('the cluster port of a node', () => {
  const host = '127.0.0.1';
  let directory: string;
  let occupant: Server;
  let number: number;
  let port: ClusterPort;
  let lines: string[];
  /** Gives the node its identity. */
  let identify: () => Promise<void>;

  const write = (_facts: object, line: string): void => void lines.push(line);

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'transitd-port-'));
    occupant = createServer().listen(0, host);
    await once(occupant, 'listening');
    number = (occupant.address() as AddressInfo).port;
    lines = [];
    const { identity } = await (await testCluster()).node(1);
    port = new ClusterPort(
      {
        config: { cluster_listen: { host, port: number }, cluster_addr: `${host}:${number}` } as ClusterHost['config'],
        log: { info: write, warn: write } as unknown as Logger,
        events: new MemberEvents(),
        forwarded: new ForwardedRequests(),
      },
      new MembershipList(directory, undefined),
      { raft: { accept: () => undefined, judge: () => 'in order' }, driver: { status: () => ({ leader: 0 }) as never } },
    );
    identify = () => port.useIdentity(identity);
  });
  afterEach(async () => {
    await port.close();
    await vacate();
    rmSync(directory, { recursive: true, force: true });
  });

  const vacate = (): Promise<void> => new Promise((resolve) => void occupant.close(() => resolve()));

  const isOpen = (): Promise<boolean> =>
    new Promise((resolve) => {
      const socket = connect(number, host, () => resolve(true)).on('error', () => resolve(false));
      socket.on('connect', () => socket.destroy());
    });

  const opened = 'the cluster port is open';

  it('opens once it has handlers and an identity, whichever comes last', async () => {
    await vacate();
    await port.serve({});
    await port.retryOpen();
    expect(await isOpen()).to.equal(false);
    await identify();
    expect([await isOpen(), lines]).to.deep.equal([true, [opened]]);
  });

  it('stays closed without handlers', async () => {
    await vacate();
    await identify();
    await port.retryOpen();
    expect(await isOpen()).to.equal(false);
    await port.serve({});
    expect([await isOpen(), lines]).to.deep.equal([true, [opened]]);
  });

  it('is opened by one attempt, however many ask', async () => {
    await vacate();
    await identify();
    await Promise.all([port.serve({}), port.retryOpen(), port.retryOpen()]);
    await port.retryOpen();
    expect(lines).to.deep.equal([opened]);
  });

  it('is tried again after it was in use', async () => {
    await identify();
    const error = await port.serve({}).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(StartError);
    await port.retryOpen();
    expect(lines).to.deep.equal(['could not open the cluster port; retrying']);
    await vacate();
    await port.retryOpen();
    expect([await isOpen(), lines.at(-1)]).to.deep.equal([true, opened]);
  });

  it('does not open any more once it was closed, not even by an attempt in progress', async () => {
    await vacate();
    await identify();
    const opening = port.serve({});
    await port.close();
    await opening;
    await port.retryOpen();
    expect([await isOpen(), lines]).to.deep.equal([false, []]);
  });
});
