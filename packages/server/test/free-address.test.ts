// @live
import { createHook } from 'node:async_hooks';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { addressText } from '@transitd/configuration';
import { expect } from 'chai';
import { requireFree } from '../src/listener.ts';

/** No other process uses these addresses, so a port that nothing here uses is free. */
const [own, another] = ['127.77.0.1', '127.77.0.2'] as const;

describe('the check that an address is free', () => {
  const servers: Server[] = [];
  const listen = async (host: string, reusePort: boolean): Promise<AddressInfo> => {
    const server = createServer();
    servers.push(server);
    server.listen({ host, port: 0, reusePort, exclusive: true });
    await once(server, 'listening');
    return server.address() as AddressInfo;
  };
  afterEach(async () => {
    for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
  });
  const checked = (host: string, port: number): Promise<string> =>
    requireFree({ host, port }).then(
      () => 'free',
      ({ message }: Error) => message,
    );

  for (const reusePort of [false, true])
    for (const [listening, host] of [
      [own, own],
      [own, '0.0.0.0'],
      [own, ''],
      ['0.0.0.0', own],
      ['0.0.0.0', '0.0.0.0'],
      ['', '127.0.0.1'],
      ['', 'localhost'],
      ['', ''],
    ] as const)
      it(`refuses ${host || 'no host'} while a socket${reusePort ? ' that shares' : ''} listens on ${listening || 'no host'}`, async () => {
        const { port } = await listen(listening, reusePort);
        expect(await checked(host, port)).to.equal(`listeners: ${host}:${port} is in use`);
      });

  it('says of an IPv6 address what a server says that would listen there alone', async () => {
    const { port } = await listen(own, true);
    for (const host of ['::', '::1', '::2']) {
      const alone = createServer().listen({ host, port, exclusive: true });
      const code = await once(alone, 'listening').then(
        () => undefined,
        (error: NodeJS.ErrnoException) => error.code,
      );
      if (code === undefined) await new Promise((resolve) => alone.close(resolve));
      const what = code === 'EADDRINUSE' ? 'is in use' : `cannot be used: ${code}`;
      const expected = code === undefined ? 'free' : `listeners: ${addressText({ host, port })} ${what}`;
      expect(await checked(host, port), host).to.equal(expected);
    }
  });

  it('permits another address of the same port, and port 0', async () => {
    const { port } = await listen(own, true);
    expect(await checked(another, port)).to.equal('free');
    expect(await checked(own, 0)).to.equal('free');
  });

  it('permits an address that was closed, although one of its connections waits for late packets', async () => {
    const { port } = await listen(own, true);
    const client = connect({ host: own, port });
    const [[accepted]] = await Promise.all([once(servers[0] as Server, 'connection'), once(client, 'connect')]);
    accepted.end(); // the side that ends first waits
    client.resume().once('end', () => client.end());
    await once(client, 'close');
    await new Promise((resolve) => servers.pop()?.close(resolve));
    expect(await checked(own, port)).to.equal('free');
  });

  it('names a host that cannot exist, and an address of another machine', async () => {
    const name = 'x'.repeat(300); // longer than a name can be, so that nobody has to ask for it
    expect(await checked(name, 8200)).to.equal(`listeners: ${name}:8200 cannot be used: EINVAL`);
    expect(await checked('192.0.2.1', 8200)).to.equal('listeners: 192.0.2.1:8200 cannot be used: EADDRNOTAVAIL');
  });

  it('never listens, so that no client is accepted before a server is there', async () => {
    const { port } = await listen(own, true);
    await new Promise((resolve) => servers.pop()?.close(resolve));
    const created: string[] = [];
    const hook = createHook({ init: (_id, type) => created.push(type) }).enable();
    try {
      expect(await checked(own, port)).to.equal('free');
    } finally {
      hook.disable();
    }
    expect(created).to.include('TCPWRAP');
    expect(created).to.not.include('TCPSERVERWRAP');
  });
});
