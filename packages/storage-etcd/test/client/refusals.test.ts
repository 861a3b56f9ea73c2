// @live
import { once } from 'node:events';
import { constants, createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { connectEtcd } from '../../src/client/connect-etcd.ts';
import { EtcdError, type EtcdTxn } from '../../src/etcd.ts';
import { liveEtcd } from '../live-etcd.ts';

const put = (key: string, value: Buffer): EtcdTxn => ({ compares: [], success: [{ kind: 'put', key, value }], failure: [] });
const kindOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'answered',
    (error: unknown) => {
      if (error instanceof EtcdError) return error.kind;
      throw error;
    },
  );

describe('a call that may have taken effect', () => {
  for (const code of ['NGHTTP2_ENHANCE_YOUR_CALM', 'NGHTTP2_INADEQUATE_SECURITY', 'NGHTTP2_REFUSED_STREAM'] as const) {
    it(`is not taken for a refused one: its stream was reset with ${code}`, async () => {
      const server = createServer().on('stream', (stream) => {
        stream.on('error', () => undefined);
        stream.on('data', () => stream.close(constants[code]));
      });
      await once(server.listen(0, '127.0.0.1'), 'listening');
      const etcd = connectEtcd({ endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
      try {
        expect(await kindOf(etcd.txn(put('a', Buffer.from('1'))))).to.equal('unknown');
      } finally {
        etcd.close();
        server.close();
      }
    });
  }

  it('is not taken for a refused one: it has exceeded the quota of etcd', async () => {
    const live = await liveEtcd({ args: ['--quota-backend-bytes', String(8 * 1024 * 1024)] });
    const etcd = connectEtcd({ endpoint: live.endpoint, timeoutMs: 60_000 });
    try {
      const kinds = new Map<string, string>();
      // Sent at once, so that etcd admits more than fit: it carries out all of these, and then says that it has no space for the last ones.
      for (let round = 0; [...kinds.values()].every((kind) => kind === 'answered'); round++)
        await Promise.all(
          Array.from({ length: 16 }, async (_, number) => {
            const key = `large/${round}/${number}`;
            kinds.set(key, await kindOf(etcd.txn(put(key, Buffer.alloc(1_000_000, 1)))));
          }),
        );
      for (const [key, kind] of kinds) if (kind === 'refused') expect((await etcd.range({ key })).rows, key).to.deep.equal([]);
    } finally {
      etcd.close();
      await live.stop();
    }
  });

  it('is not lost when many large ones are sent at once', async () => {
    const live = await liveEtcd();
    const etcd = connectEtcd({ endpoint: live.endpoint, timeoutMs: 60_000 });
    try {
      const kinds = Array.from({ length: 64 }, (_, number) => kindOf(etcd.txn(put(`l/${number}`, Buffer.alloc(1_000_000, 1)))));
      expect(new Set(await Promise.all(kinds))).to.deep.equal(new Set(['answered']));
    } finally {
      etcd.close();
      await live.stop();
    }
  });
});
