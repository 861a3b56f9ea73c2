import { expect } from 'chai';
import { cmac, cmacKey } from '../../src/algorithms/cmac.ts';
import type { CmacRequest, TransitEngine, TransitError } from '../../src/index.ts';
import { keyType } from '../../src/keys/key-type.ts';
import { fox, newEngine, refusalOf, secret, storedVersion } from '../fixtures.ts';

async function cmacOne(engine: TransitEngine, name: string, request: CmacRequest): Promise<string> {
  const reply = await engine.signing.cmac(name, request);
  if ('results' in reply) throw new Error('the request was no batch');
  return reply.cmac;
}

const shortened = (mac: string, bytes: number): string =>
  `svc:v1:${Buffer.from(mac.slice('svc:v1:'.length), 'base64').subarray(0, bytes).toString('base64')}`;

describe('cmac', () => {
  it('uses the key of each version', async () => {
    const { engine, store } = newEngine();
    for (const type of ['aes128-cmac', 'aes256-cmac']) {
      await engine.createKey(type, { type });
      await engine.rotateKey(type);
      for (const keyVersion of [1, 2]) {
        const { material } = await storedVersion(store, type, keyVersion);
        const cipher = keyType(type).cmac;
        if (cipher === undefined) throw new Error('not a type that makes CMACs');
        const expected = await cmac(cmacKey(cipher, secret(material)), Buffer.from(fox, 'base64'));
        expect(await cmacOne(engine, type, { input: fox, keyVersion })).to.equal(
          `svc:v${keyVersion}:${expected.toString('base64')}`,
        );
      }
    }
  });

  it('has the length of the path, otherwise of the item, otherwise of the request', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { type: 'aes128-cmac' });
    const whole = await cmacOne(engine, 'k', { input: fox });
    expect(await cmacOne(engine, 'k', { input: fox, macLength: 8 })).to.equal(shortened(whole, 8));
    expect(await cmacOne(engine, 'k', { input: fox, macLength: 8, macLengthForAll: 4 })).to.equal(shortened(whole, 4));
    const lengths = async (request: CmacRequest): Promise<readonly number[]> => {
      const items = [undefined, 5, 0].map((macLength) => ({ input: fox, macLength }));
      const reply = await engine.signing.cmac('k', { ...request, items });
      if (!('results' in reply)) throw new Error('the request was a batch');
      return reply.results.map((result) => ('cmac' in result ? Buffer.from(result.cmac.slice(7), 'base64').length : -1));
    };
    expect(await lengths({})).to.deep.equal([16, 5, 16]);
    expect(await lengths({ macLength: 9 })).to.deep.equal([9, 5, 16]);
    expect(await lengths({ macLength: 9, macLengthForAll: 4 })).to.deep.equal([4, 4, 4]);
  });

  it('that would never verify is an error of its item', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { type: 'aes128-cmac' });
    const reply = await engine.signing.cmac('k', {
      items: [
        { input: fox, macLength: 3 },
        { input: fox, macLength: 4 },
      ],
    });
    if (!('results' in reply)) throw new Error('the request was a batch');
    expect(reply.outcome).to.equal('some_failed');
    expect(reply.results[0]).to.have.property('error').that.includes('a shorter CMAC never verifies');
  });

  describe('to verify', () => {
    const verdict = (engine: TransitEngine, request: object): Promise<unknown> =>
      engine.signing.verify('k', { input: fox, ...request }).catch((error: TransitError) => `${error.code}: ${error.message}`);
    let engine: TransitEngine;
    let whole: string;
    beforeEach(async () => {
      engine = newEngine().engine;
      await engine.createKey('k', { type: 'aes256-cmac' });
      whole = await cmacOne(engine, 'k', { input: fox });
    });

    it('has its full length', async () => {
      expect(await verdict(engine, { cmac: whole })).to.deep.equal({ valid: true });
      expect(await verdict(engine, { cmac: whole, input: '' })).to.deep.equal({ valid: false });
      const longer = `svc:v1:${Buffer.concat([Buffer.from(whole.slice(7), 'base64'), Buffer.alloc(1)]).toString('base64')}`;
      for (const cmac of [...Array.from({ length: 16 }, (_, bytes) => shortened(whole, bytes)), longer])
        expect(await verdict(engine, { cmac }), cmac).to.match(
          /^invalid_request: the CMAC has \d+ bytes, and the key demands 16: /,
        );
    });

    it('has the length that the request or the item says', async () => {
      for (const bytes of [4, 8, 16]) {
        const cmac = shortened(whole, bytes);
        expect(await verdict(engine, { cmac, macLength: bytes })).to.deep.equal({ valid: true });
        expect(await verdict(engine, { cmac, macLength: bytes, input: '' })).to.deep.equal({ valid: false });
        for (const macLength of [4, 8, 12, 16].filter((other) => other !== bytes))
          expect(await verdict(engine, { cmac, macLength })).to.match(
            new RegExp(`^invalid_request: the CMAC has ${bytes} bytes, and mac_l`),
          );
      }
      for (const macLength of [-1, 1, 3, 17])
        expect(await verdict(engine, { cmac: whole, macLength })).to.match(/^invalid_request: mac_length must/);
      const items = [
        { input: fox, cmac: shortened(whole, 4), macLength: 4 },
        { input: fox, cmac: shortened(whole, 8) },
        { input: fox, cmac: shortened(whole, 4) },
        { input: fox, cmac: shortened(whole, 8), macLength: 0 },
      ];
      expect(await verdict(engine, { items, macLength: 8 })).to.deep.equal({
        outcome: 'some_failed',
        results: [
          { valid: true, reference: '' },
          { valid: true, reference: '' },
          { error: 'the CMAC has 4 bytes, and mac_length is 8', reference: '' },
          {
            error: 'the CMAC has 8 bytes, and the key demands 16: set mac_length in the request, or min_mac_length of the key',
            reference: '',
          },
        ],
      });
    });

    it('may be as short as the key is configured for, and the setting is part of a backup', async () => {
      for (const minMacLength of [0, 3, 17, 4.5])
        expect((await refusalOf(engine.configureKey('k', { minMacLength }))).code).to.equal('invalid_request');
      expect(
        (await engine.configureKey('k', { minMacLength: 8, exportable: true, allowPlaintextBackup: true })).key.minMacLength,
      ).to.equal(8);
      const verdicts = async () => [
        await verdict(engine, { cmac: shortened(whole, 8) }),
        await verdict(engine, { cmac: shortened(whole, 7) }),
      ];
      expect((await verdicts())[0]).to.deep.equal({ valid: true });
      expect((await verdicts())[1]).to.include('the key demands 8');
      const backup = (await engine.transfers.backupKey('k')).toString('base64');
      await engine.configureKey('k', { deletionAllowed: true });
      await engine.deleteKey('k');
      await engine.transfers.restoreKey({ backup });
      expect((await verdicts())[0]).to.deep.equal({ valid: true });
    });
  });

  it('has a setting that keys of other types lack', async () => {
    const { engine } = newEngine();
    const { key } = await engine.createKey('h', { type: 'hmac', keySize: 32 });
    expect(key.minMacLength).to.equal(undefined);
    expect((await refusalOf(engine.configureKey('h', { minMacLength: 8 }))).message).to.include(
      'min_mac_length is a setting of keys that make CMACs',
    );
  });

  for (const [request, message] of [
    [{ input: fox, macLength: 17 }, 'mac_length must not be larger than the cipher block size of 16 bytes'],
    [{ input: fox, macLengthForAll: -1 }, 'mac_length must not be larger than the cipher block size of 16 bytes'],
    [{ input: fox, macLength: 1 }, 'mac_length must be 0 or at least 4 bytes, because a shorter CMAC never verifies'],
    [{ input: fox, macLengthForAll: 3 }, 'mac_length must be 0 or at least 4 bytes, because a shorter CMAC never verifies'],
    [{}, 'missing input for CMAC'],
    [{ input: '!!' }, 'unable to decode input as base64: illegal base64 data at input byte 0'],
    [{ input: fox, keyVersion: 2 }, 'key version does not exist; latest key version is 1'],
  ] as const) {
    it(`refuses ${JSON.stringify(request)}: ${message}`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', { type: 'aes128-cmac' });
      expect((await refusalOf(engine.signing.cmac('k', request))).message).to.equal(message);
    });
  }

  it('is refused for other key types; CMAC keys make only CMACs and HMACs', async () => {
    const { engine } = newEngine();
    for (const type of ['aes256-gcm96', 'hmac']) {
      await engine.createKey(type, { type });
      expect((await refusalOf(engine.signing.cmac(type, { input: fox }))).message).to.equal(
        `key type ${type} does not support CMAC`,
      );
    }
    for (const type of ['hmac', 'aes128-cmac']) {
      await engine.createKey(type, { type });
      const message = `message encryption not supported for key type ${type}`;
      const encrypting = engine.ciphertexts.encrypt(type, { plaintext: fox, mayCreate: true, mayUpdate: true });
      expect((await refusalOf(encrypting)).message).to.equal(message);
      expect((await refusalOf(engine.ciphertexts.datakey(type, { kind: 'wrapped' }))).message).to.equal(message);
      expect((await refusalOf(engine.ciphertexts.decrypt(type, { ciphertext: 'svc:v1:AAAA' }))).message).to.equal(
        `message decryption not supported for key type ${type}`,
      );
    }
  });
});
