import { expect } from 'chai';
import { anything, encryptOne, fox, newEngine, refusalOf } from '../fixtures.ts';

describe('the observer of the use of keys', () => {
  const observedEngine = () => {
    const uses: string[] = [];
    const observer = {
      began: (items: number) => {
        uses.push(`began ${items}`);
        return (failed: boolean) => uses.push(failed ? 'failed' : 'ended');
      },
    };
    return { ...newEngine({ observer }), uses };
  };

  it('is told the number of inputs before a key is used, and the end afterwards', async () => {
    const { engine, uses } = observedEngine();
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
    expect(uses.splice(0)).to.deep.equal(['began 1', 'ended']);
    await engine.encryption.encrypt('k', { ...anything, batchInput: [{ plaintext: fox }, { plaintext: fox }] });
    expect(uses.splice(0)).to.deep.equal(['began 2', 'ended']);
    await engine.encryption.decrypt('k', { ciphertext });
    await engine.encryption.datakey('k', { kind: 'wrapped' });
    expect(uses).to.deep.equal(['began 1', 'ended', 'began 1', 'ended']);
  });

  it('is told that a use failed, and the refusal stays the same', async () => {
    const { engine, uses } = observedEngine();
    await engine.createKey('k', {});
    const request = { ciphertext: 'svc:v1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=' };
    const plain = newEngine();
    await plain.engine.createKey('k', {});
    const refusal = await refusalOf(engine.encryption.decrypt('k', request));
    expect(refusal).to.deep.equal(await refusalOf(plain.engine.encryption.decrypt('k', request)));
    expect(uses).to.deep.equal(['began 1', 'failed']);
  });

  it('may skip a use', async () => {
    const { engine } = newEngine({ observer: { began: () => undefined } });
    expect(await encryptOne(engine, 'k', { plaintext: fox })).to.have.property('ciphertext');
  });
});
