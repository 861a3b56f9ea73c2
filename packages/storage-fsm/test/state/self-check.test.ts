import { open, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { StorageDamaged } from '../../src/errors.ts';
import { KeyValueMachine } from '../../src/state/key-value-machine.ts';
import { StateStore } from '../../src/state/state-store.ts';
import { inTemporaryDirectory } from '../directory/temporary-directory.ts';
import { apply, flush, put } from '../snapshot/snapshot-nodes.ts';

describe('checkDigest', () => {
  it('accepts an intact state as of the newest flush, while entries are applied and flushed', () =>
    inTemporaryDirectory(async (parent) => {
      const machine = await KeyValueMachine.open({ directory: join(parent, 'state'), base: 0 });
      expect(await machine.checkDigest()).to.deep.equal({ sound: true, index: 0, digest: 0n });
      apply(machine, ...Array.from({ length: 300 }, (_, i) => put(`a/${i}`, 'x'.repeat(1000))));
      await flush(machine);
      const { digest } = machine.applied;
      const check = machine.checkDigest();
      apply(machine, put('a/1', 'meanwhile'));
      await flush(machine);
      expect(await check).to.deep.equal({ sound: true, index: 300, digest });
      await machine.close();
    }));

  it('finds a record with a flipped bit, after which all reads fail', () =>
    inTemporaryDirectory(async (parent) => {
      const directory = join(parent, 'state');
      const first = await KeyValueMachine.open({ directory, base: 0 });
      apply(first, ...Array.from({ length: 100 }, (_, i) => put(`a/${i}`, `${i}`.padEnd(20_000, 'v'))));
      await flush(first);
      await first.close();
      const failures: Error[] = [];
      const machine = await KeyValueMachine.open({ directory, base: 0, onFailure: (error) => failures.push(error) });
      for (const name of await readdir(directory)) if (name.endsWith('.ldb')) await flip(join(directory, name), 'vvvvvv');
      expect(await machine.checkDigest()).to.deep.equal({ sound: false });
      expect(failures).to.have.length(1);
      expect(failures[0]).to.be.instanceOf(StorageDamaged);
      expect(() => machine.getSync('a/1')).to.throw(StorageDamaged);
      expect(await machine.checkDigest()).to.deep.equal({ sound: false });
      await machine.close();
    }));

  it('finds intact records that do not match the stored digest', () =>
    inTemporaryDirectory(async (parent) => {
      const failures: Error[] = [];
      const store = await StateStore.open(join(parent, 'state'), (error) => failures.push(error));
      await store.write(new Map([['a', { value: Buffer.from('1'), revision: 1 }]]), {
        appliedIndex: 1,
        valuesWritten: 1,
        digest: 5n,
      });
      expect(await store.checkDigest()).to.equal(undefined);
      expect(failures[0])
        .to.be.instanceOf(StorageDamaged)
        .with.property('message')
        .that.includes('do not match the state digest');
      await store.close();
    }));
});

async function flip(path: string, text: string): Promise<void> {
  const at = (await readFile(path)).indexOf(text);
  if (at < 0) return;
  const file = await open(path, 'r+');
  await file.write(Buffer.from('w'), 0, 1, at);
  await file.close();
}
