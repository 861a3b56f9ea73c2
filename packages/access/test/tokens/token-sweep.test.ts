import { expect } from 'chai';
import { setup } from '../fixtures.ts';

describe('the sweep', () => {
  it('deletes only expired tokens, oldest first', async () => {
    const { clock, create, registry, records } = await setup();
    for (const ttlS of [30, 10, 20, 1000]) await create({ policies: ['a'], ttlS });
    clock.now += 30_000;
    expect(await registry.sweep(2)).to.deep.equal({ removed: 2, unreadable: 0 });
    expect(await registry.sweep(2)).to.deep.equal({ removed: 1, unreadable: 0 });
    expect(await registry.sweep(2)).to.deep.equal({ removed: 0, unreadable: 0 });
    expect(await records('access/token/')).to.have.lengthOf(2);
    expect(await records('access/due/')).to.have.lengthOf(1);
    expect(await records('access/accessor/')).to.have.lengthOf(2);
  });

  it('keeps and counts tokens whose record it cannot read, and continues after them', async () => {
    const { clock, store, create, registry, tokens, records } = await setup();
    const top = await create({ policies: ['a'] });
    const spoil = async (token: string): Promise<void> => {
      const { id } = (await tokens.authenticate(token)) ?? {};
      await store.commit({ conditions: [], writes: [{ path: `access/token/${id}`, value: Buffer.from('{"format":2}') }] });
    };
    for (const ttlS of [1, 2]) await spoil((await create({ policies: ['a'], ttlS })).token);
    await create({ policies: ['a'], ttlS: 3 });
    const child = await create({}, { by: top.token });
    await create({}, { by: top.token });
    await spoil(child.token);
    await registry.revoke({ token: top.token });
    clock.now += 3000;
    let removed = 0;
    for (let round = 0; round < 4; round += 1) removed += (await registry.sweep(2)).removed;
    expect(removed).to.equal(2);
    expect(await records('access/token/')).to.have.lengthOf(4);
    await registry.sweep(10); // to the end of the round
    expect((await registry.sweep(10)).unreadable).to.equal(3);
  });
});
