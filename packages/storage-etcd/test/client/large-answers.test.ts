// @live
import { expect } from 'chai';
import { connectEtcd } from '../../src/client/connect-etcd.ts';
import { keysBelow } from '../../src/copy/keys.ts';
import { encodeRecord } from '../../src/copy/record-value.ts';
import { answerBytesMax, type Etcd, EtcdError } from '../../src/etcd.ts';
import { readState } from '../../src/replica/state-feed.ts';
import { type LiveEtcd, liveEtcd } from '../live-etcd.ts';

const records = 12;
const value = encodeRecord({ revision: 0, value: Buffer.alloc(1_000_000, 1) });

describe('a state with more large records than one answer may have', () => {
  const keys = keysBelow('test');
  const all = { key: keys.start, end: keys.end };
  const key = (number: number): string => keys.record(0, `large/${number}`);
  let live: LiveEtcd;
  let etcd: Etcd;
  before(async () => {
    live = await liveEtcd({ args: ['--max-request-bytes', String(4 * answerBytesMax)] });
    etcd = connectEtcd({ endpoint: live.endpoint, timeoutMs: 60_000 });
    for (let number = 0; number < records; number++)
      await etcd.txn({ compares: [], success: [{ kind: 'put', key: key(number), value }], failure: [] });
  });
  after(async () => {
    etcd.close();
    await live.stop();
  });

  it('is not read by one call, which ends before its answer arrives and leaves the connection alone', async () => {
    const error = await etcd.range(all).catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(EtcdError);
    expect((error as EtcdError).kind).to.equal('too_large');
    expect((await etcd.range({ ...all, limit: 2 })).rows).to.have.length(2);
  });

  it('is read page by page', async () => {
    const copy = await readState({ etcd, keys });
    expect([...copy.paths({ prefix: 'large/' })]).to.have.length(records);
  });

  it('is shown by a watch, whose messages etcd splits at the size that its operator allows', async () => {
    const ended = new AbortController();
    const seen = new Set<string>();
    let largest = 0;
    for await (const message of etcd.watch({ ...all, startRevision: 1 }, ended.signal)) {
      if (message.kind !== 'events') continue;
      for (const { row } of message.events) seen.add(row.key);
      largest = Math.max(largest, message.events.length);
      if (seen.size === records) ended.abort();
    }
    expect(seen.size).to.equal(records);
    expect(largest * value.length).to.be.above(answerBytesMax);
  });
});
