import { expect } from 'chai';
import { fieldsIn, JsonRecord, memoryStore, type StoredRecord } from '../../src/index.ts';

const path = 'core/example';
const schema = {
  safeParse: (fields: unknown) => {
    const { count, ...others } = Object(fields) as { readonly count?: unknown };
    return typeof count === 'number' && Object.keys(others).length === 0 ? { data: { count } } : {};
  },
};
const record = new JsonRecord(path, schema);

/** Returns the record of a store, and the bytes that it gave. */
async function readFrom(text: string): Promise<{ readonly read: Promise<unknown>; readonly given: StoredRecord }> {
  const given = { value: Buffer.from(text), revision: 7 };
  const read = record.read({ get: async () => given });
  await read.catch(() => undefined);
  return { read, given };
}

describe('a record of JSON', () => {
  it('is read as it was written, without the number of the format', async () => {
    const store = memoryStore();
    expect(await record.read(store)).to.equal(undefined);
    const { revision } = await store.commit({ conditions: [], writes: [record.written({ count: 3 })] });
    expect(fieldsIn((await store.get(path))?.value ?? Buffer.of())).to.deep.equal({ format: 1, count: 3 });
    expect(await record.read(store)).to.deep.equal({ value: { count: 3 }, revision });
  });

  it('is wiped after it was read, whether it can be used or not', async () => {
    for (const text of ['{"format":1,"count":3}', '{"format":9,"count":3}'])
      expect(
        [...(await readFrom(text)).given.value].some((byte) => byte !== 0),
        text,
      ).to.equal(false);
  });

  for (const text of ['{"format":2,"count":3}', '{"count":3}', '{"format":1,"count":"secret"}', '["secret"]', 'secret', ''])
    it(`is refused with an error that repeats nothing of it: ${text}`, async () => {
      const { read } = await readFrom(text);
      const error = await read.catch((reason: unknown) => reason);
      expect(String(error)).to.equal('Error: the record core/example has an unknown format');
      expect(record.decoded(Buffer.from(text))).to.equal(undefined);
    });
});
