import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { hmacAlgorithm } from '../../src/algorithms/hash-algorithm.ts';
import type { BatchReply, HmacRequest, HmacResult, TransitEngine, VerifyRequest, VerifyResult } from '../../src/index.ts';
import { hmacOf } from '../../src/operations/hmac.ts';
import { base64, fox, newEngine, refusalOf, secret, storedVersion } from '../fixtures.ts';

interface Group {
  readonly tagSize: number;
  readonly tests: readonly {
    readonly comment: string;
    readonly key: string;
    readonly msg: string;
    readonly tag: string;
    readonly result: 'valid' | 'invalid';
  }[];
}

const hex = (text: string): Buffer => Buffer.from(text, 'hex');

async function hmacOne(engine: TransitEngine, name: string, request: HmacRequest): Promise<HmacResult> {
  const reply = await engine.signing.hmac(name, request);
  if ('results' in reply) throw new Error('the request was no batch');
  return reply;
}

async function isValid(engine: TransitEngine, name: string, request: VerifyRequest): Promise<boolean> {
  const reply: VerifyResult | BatchReply<VerifyResult> = await engine.signing.verify(name, request);
  if ('results' in reply) throw new Error('the request was no batch');
  return reply.valid;
}

describe('HMAC, on the vectors of Wycheproof', () => {
  for (const [algorithm, file, cases] of [
    ['sha2-224', 'hmac_sha224', 137],
    ['sha2-256', 'hmac_sha256', 136],
    ['sha2-384', 'hmac_sha384', 119],
    ['sha2-512', 'hmac_sha512', 123],
    ['sha3-224', 'hmac_sha3_224', 129],
    ['sha3-256', 'hmac_sha3_256', 124],
    ['sha3-384', 'hmac_sha3_384', 126],
    ['sha3-512', 'hmac_sha3_512', 138],
  ] as const) {
    it(`agrees with the ${cases} cases of ${algorithm}; a truncated tag is invalid`, async () => {
      const text = readFileSync(new URL(`../vectors/${file}_test.json`, import.meta.url), 'utf8');
      const groups: readonly Group[] = JSON.parse(text).testGroups;
      let seen = 0;
      for (const { tagSize, tests } of groups) {
        for (const { key, msg, tag, result, comment } of tests) {
          const whole = await hmacOf(hmacAlgorithm(algorithm) ?? '', secret(hex(key)), hex(msg));
          const agrees = whole.subarray(0, tagSize / 8).toString('hex') === tag;
          expect(agrees, comment).to.equal(result === 'valid');
          seen += 1;
        }
      }
      expect(seen).to.equal(cases);
    });
  }
});

describe('hmac', () => {
  it('uses the separate HMAC secret of a key', async () => {
    const { engine, store } = newEngine();
    for (const type of ['aes128-gcm96', 'aes256-gcm96', 'chacha20-poly1305', 'aes128-cmac', 'aes256-cmac']) {
      await engine.createKey(type, { type });
      const { hmacSecret } = await storedVersion(store, type, 1);
      expect(hmacSecret).to.have.lengthOf(32);
      const expected = createHmac('sha256', hmacSecret).update('the quick brown fox').digest('base64');
      expect(await hmacOne(engine, type, { input: fox })).to.deep.equal({ hmac: `svc:v1:${expected}`, keyVersion: 1 });
    }
  });

  it('of a key of type hmac uses the key itself, which has the requested size', async () => {
    const { engine, store } = newEngine();
    for (const keySize of [0, 32, 33, 512]) {
      const name = `k${keySize}`;
      await engine.createKey(name, { type: 'hmac', keySize });
      await engine.rotateKey(name);
      expect(await engine.readKey(name)).to.include({ keySize: keySize || 32, supportsEncryption: false });
      const { material, hmacSecret } = await storedVersion(store, name, 2);
      expect([material.length, hmacSecret.length]).to.deep.equal([keySize || 32, 0]);
      const expected = createHmac('sha512', material).update('').digest('base64');
      expect((await hmacOne(engine, name, { input: '', algorithm: 'sha2-512' })).hmac).to.equal(`svc:v2:${expected}`);
    }
  });

  it('supports every algorithm, and is valid only under the algorithm that made it', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { type: 'hmac' });
    const names = ['sha1', ...['sha2', 'sha3'].flatMap((family) => [224, 256, 384, 512].map((bits) => `${family}-${bits}`))];
    for (const algorithm of names) {
      const { hmac } = await hmacOne(engine, 'k', { input: fox, algorithm });
      for (const hashAlgorithm of names) {
        expect(await isValid(engine, 'k', { input: fox, hmac, hashAlgorithm })).to.equal(hashAlgorithm === algorithm);
      }
    }
  });

  for (const [request, message] of [
    [{}, 'missing input for HMAC'],
    [{ input: '!!' }, 'unable to decode input as base64: illegal base64 data at input byte 0'],
    [{ input: '', algorithm: 'md5' }, 'unsupported algorithm "md5"'],
    [{ input: '', algorithm: 'none' }, 'unsupported algorithm "none"'],
    [{ input: '', algorithm: 'SHA2-256' }, 'unsupported algorithm "SHA2-256"'],
    [{ input: '', keyVersion: 4 }, 'key version does not exist; latest key version is 3'],
    [{ input: '', keyVersion: -1 }, 'key version does not exist (cannot be negative)'],
    [{ input: '', keyVersion: 1 }, 'cannot generate HMAC: version is too old (disallowed by policy)'],
  ] as const) {
    it(`refuses ${JSON.stringify(request)}: ${message}`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', {});
      await engine.rotateKey('k');
      await engine.rotateKey('k');
      await engine.configureKey('k', { minEncryptionVersion: 2 });
      expect((await refusalOf(engine.signing.hmac('k', request))).message).to.equal(message);
    });
  }

  it('of a large input covers all of it, and yields to the event loop', async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', {});
    const input = Buffer.alloc(4 * 1024 * 1024 + 1, 3);
    let turns = 0;
    const count = setInterval(() => {
      turns += 1;
    }, 0);
    const { hmac } = await hmacOne(engine, 'k', { input: input.toString('base64'), algorithm: 'sha3-512' });
    clearInterval(count);
    const { hmacSecret } = await storedVersion(store, 'k', 1);
    expect(hmac).to.equal(`svc:v1:${createHmac('sha3-512', hmacSecret).update(input).digest('base64')}`);
    expect(turns).to.be.above(0);
  });
});

describe('verify of an HMAC', () => {
  it('returns false for another input, and for a modified or shortened MAC', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    const { hmac } = await hmacOne(engine, 'k', { input: fox });
    const bytes = Buffer.from(hmac.slice('svc:v1:'.length), 'base64');
    const changed = Buffer.from(bytes);
    changed[31] = (changed[31] ?? 0) ^ 1;
    expect(await isValid(engine, 'k', { input: fox, hmac })).to.equal(true);
    expect(await isValid(engine, 'k', { input: fox, hmac: hmac.replace('svc', 'vault') }), 'from elsewhere').to.equal(true);
    expect(await isValid(engine, 'k', { input: base64('jumps'), hmac })).to.equal(false);
    for (const other of [changed, bytes.subarray(0, 16), Buffer.alloc(0), Buffer.concat([bytes, Buffer.alloc(1)])]) {
      expect(await isValid(engine, 'k', { input: fox, hmac: `svc:v1:${other.toString('base64')}` })).to.equal(false);
    }
  });

  for (const [hmac, message] of [
    ['junk', 'invalid HMAC to verify: no prefix'],
    ['svc:v1', 'invalid HMAC: wrong number of fields'],
    ['svc:vx:AAAA', 'invalid HMAC: version number could not be decoded'],
    ['svc:v4:AAAA', 'invalid HMAC: version is too new'],
    ['svc:v1:AAAA', 'cannot verify HMAC: version is too old (disallowed by policy)'],
    ['svc:v0:AAAA', 'cannot verify HMAC: version is too old (disallowed by policy)'],
    ['svc:v2:!!', 'unable to decode verification HMAC as base64: illegal base64 data at input byte 0'],
  ] as const) {
    it(`refuses ${hmac}: ${message}`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', {});
      await engine.rotateKey('k');
      await engine.rotateKey('k');
      await engine.configureKey('k', { minDecryptionVersion: 2 });
      expect((await refusalOf(engine.signing.verify('k', { input: fox, hmac }))).message).to.equal(message);
    });
  }

  for (const [request, message] of [
    [{}, "none of 'signature', 'hmac' and 'cmac' was given to verify"],
    [{ hmac: 'svc:v1:AAAA', signature: 'svc:v1:AAAA' }, "provide one of 'signature', 'hmac' or 'cmac'"],
    [{ hmac: 'svc:v1:AAAA', cmac: 'svc:v1:AAAA' }, "provide one of 'signature', 'hmac' or 'cmac'"],
    [{ signature: 'svc:v1:AAAA' }, 'key type aes256-gcm96 does not support verification'],
    [{ cmac: 'svc:v1:AAAA' }, 'key type aes256-gcm96 does not support CMAC'],
    [{ hmac: 'svc:v1:AAAA', hashAlgorithm: 'md5' }, 'invalid hash algorithm "md5"'],
    [{ hmac: 'svc:v1:AAAA' }, 'missing input'],
    [{ hmac: 'svc:v1:AAAA', input: '!!' }, 'unable to decode input as base64: illegal base64 data at input byte 0'],
    [{ items: [{ hmac: 'a' }, { cmac: 'a' }] }, "elements of batch_input must all provide either 'signature', 'hmac' or 'cmac'"],
    [{ hmac: '' }, 'invalid HMAC to verify: no prefix'],
    [{ cmac: '', signature: '' }, 'key type aes256-gcm96 does not support verification'],
    [{ items: [{ hmac: 'a' }, {}] }, "some elements of batch_input are missing 'hmac'"],
    [{ items: [{ input: '' }] }, "no batch_input elements have 'signature', 'hmac' or 'cmac'"],
  ] as const) {
    it(`refuses ${JSON.stringify(request)}: ${message}`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', {});
      expect((await refusalOf(engine.signing.verify('k', request))).message).to.equal(message);
    });
  }
});

describe('batches that their key or algorithm refuses', () => {
  for (const [operation, type, request, message] of [
    ['sign', 'hmac', {}, 'key type hmac does not support signing'],
    ['verify', 'aes256-gcm96', { signature: 'svc:v1:AAAA' }, 'key type aes256-gcm96 does not support verification'],
    ['verify', 'hmac', { cmac: 'svc:v1:AAAA' }, 'key type hmac does not support CMAC'],
    ['cmac', 'hmac', {}, 'key type hmac does not support CMAC'],
    ['hmac', 'hmac', { algorithm: 'md5' }, 'unsupported algorithm "md5"'],
    ['verify', 'hmac', { hmac: 'svc:v1:AAAA', hashAlgorithm: 'md5' }, 'invalid hash algorithm "md5"'],
  ] as const) {
    it(`are refused as a whole: ${operation}: ${message}`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', { type });
      const items = [
        { input: '!!', ...request },
        { input: fox, ...request },
      ];
      const refusal = await refusalOf(engine.signing[operation]('k', { ...request, items }));
      expect([refusal.code, refusal.message]).to.deep.equal(['not_supported', message]);
    });
  }
});

describe('batches of HMACs', () => {
  it('answer each item with its version and reference, or its error', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    const reply = await engine.signing.hmac('k', {
      items: [{ input: fox, reference: 'a' }, { input: '!!' }, {}, { input: '' }],
    });
    if (!('results' in reply)) throw new Error('the request was a batch');
    const { hmac } = await hmacOne(engine, 'k', { input: fox });
    expect(reply.outcome).to.equal('some_failed');
    expect(reply.results.slice(0, 3)).to.deep.equal([
      { hmac, keyVersion: 1, reference: 'a' },
      { error: 'unable to decode input as base64: illegal base64 data at input byte 0', reference: '' },
      { error: 'missing input for HMAC', reference: '' },
    ]);
    expect(reply.results[3], 'the version is that of the request').to.include({ keyVersion: 1 });
    const checked = await engine.signing.verify('k', {
      items: [{ input: fox, hmac, reference: 'r' }, { input: base64('x'), hmac }, { input: fox, hmac: 'svc:v1:!!' }, { hmac }],
    });
    expect(checked).to.deep.equal({
      outcome: 'some_failed',
      results: [
        { valid: true, reference: 'r' },
        { valid: false, reference: '' },
        { error: 'unable to decode verification HMAC as base64: illegal base64 data at input byte 0', reference: '' },
        { error: 'missing input', reference: '' },
      ],
    });
  });
});
