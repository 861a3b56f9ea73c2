import { expect } from 'chai';
import type { Barrier } from '../../src/index.ts';
import { messageOf, unsealedBarrier } from '../fixtures.ts';

/** The operations that share holders authorize, behind one interface. */
const attempts = [
  {
    name: 'rekey',
    step: 'rekey operation',
    of: ({ rekey }: Barrier) => ({
      start: () => rekey.start({ shares: 1, threshold: 1, requireVerification: false }),
      update: (nonce: string, share: Uint8Array): Promise<unknown> => rekey.update({ nonce, share }),
      cancel: (nonce: string) => rekey.cancel({ nonce }),
    }),
  },
  {
    name: 'root generation',
    step: 'root generation',
    of: ({ rootGeneration }: Barrier) => ({
      start: () => rootGeneration.start(Buffer.alloc(26)),
      update: (nonce: string, share: Uint8Array): Promise<unknown> =>
        rootGeneration.update({ nonce, share }, async () => 's.'.padEnd(26, 'A')),
      cancel: (nonce: string) => rootGeneration.cancel({ nonce }),
    }),
  },
];

for (const { name, step, of } of attempts) {
  describe(`an attempt at a ${name}`, () => {
    it('names the operation in its error messages', async () => {
      const { barrier, store, shares } = await unsealedBarrier();
      const [share = Buffer.alloc(0)] = shares;
      const attempt = of(barrier);
      expect(await messageOf(attempt.update('', share))).to.equal(`no ${name} in progress`);
      const { nonce } = await attempt.start();
      expect(await messageOf(attempt.start())).to.equal(`${name} already in progress`);
      expect(await messageOf(attempt.update('', share))).to.equal(`incorrect nonce for this ${step}`);
      expect(await messageOf(attempt.cancel(''))).to.equal(`incorrect nonce for this ${step}`);
      const seal = await store.get('core/seal');
      await store.commit({ conditions: [], writes: [{ path: 'core/seal', value: seal?.value ?? null }] });
      expect(await messageOf(attempt.update(nonce, share))).to.equal(`the seal has changed; start the ${name} again`);
    });

    it('reports that it has ended when it is dropped while a step waits', async () => {
      const { barrier, shares } = await unsealedBarrier();
      const [share = Buffer.alloc(0)] = shares;
      const attempt = of(barrier);
      const { nonce } = await attempt.start();
      const given = messageOf(attempt.update(nonce, share));
      await Promise.resolve(); // the step has begun to read the seal
      barrier.dropAttempts();
      expect(await given).to.equal(`the ${name} has ended: this node was sealed or is no longer the leader`);
    });
  });
}
