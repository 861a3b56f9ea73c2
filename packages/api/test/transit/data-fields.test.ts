import { expect } from 'chai';
import fc from 'fast-check';
import type { GuardedOperation } from '../../src/operation/operation.ts';
import { transitDataRoutes } from '../../src/transit/data.ts';
import { itemFields } from '../../src/transit/data-fields.ts';
import { type Answer, type Served, served } from '../served.ts';

const fox = Buffer.from('the quick brown fox').toString('base64');

const keys: Readonly<Record<string, object>> = {
  aes: {},
  derived: { derived: true },
  convergent: { derived: true, convergent_encryption: true },
  rsa: { type: 'rsa-2048' },
  ecdsa: { type: 'ecdsa-p256' },
  ed25519: { type: 'ed25519' },
  'ed25519-derived': { type: 'ed25519', derived: true },
  'ml-dsa': { type: 'ml-dsa', parameter_set: '44' },
  hybrid: { type: 'hybrid', parameter_set: '44', hybrid_key_type_pqc: 'ml-dsa', hybrid_key_type_ec: 'ecdsa-p256' },
  hmac: { type: 'hmac' },
  cmac: { type: 'aes128-cmac' },
};

let at: Served;
const post = (path: string, body: object): Promise<Answer> => at.ask(`POST transit/${path}`, { body });
const made = async (path: string, body: object): Promise<Record<string, string>> => (await post(path, body)).body.data;

/** Valid members of one input, by operation; the key of each operation is `keyOf`. */
const valid: Record<string, object> = {};
const keyOf: Readonly<Record<string, string>> = {
  encrypt: 'aes',
  decrypt: 'aes',
  rewrap: 'aes',
  hmac: 'hmac',
  cmac: 'cmac',
  sign: 'ecdsa',
  verify: 'ecdsa',
};

const operations = new Map(
  transitDataRoutes.flatMap(({ path, operations: { POST } }) => {
    const [word = ''] = path.split('/');
    return POST !== undefined && word in keyOf ? [[word, POST as GuardedOperation] as const] : [];
  }),
);

/** Returns the fields of the request and of an item of its batch. */
function fieldsOf(name: string): { readonly ofRequest: readonly string[]; readonly ofItem: readonly string[] } {
  const takes = operations.get(name)?.takes ?? expect.fail(name);
  return {
    ofRequest: Object.keys(takes).filter((field) => !['batch_input', 'name', 'urlalgorithm', 'url_mac_length'].includes(field)),
    ofItem: Object.keys(takes['batch_input']?.items ?? {}),
  };
}

/** Values other than the defaults. */
const samples: Readonly<Record<string, unknown>> = {
  key_version: 1,
  mac_length: 8,
  padding_scheme: 'pkcs1v15',
  decrypt_padding_scheme: 'pkcs1v15',
  encrypt_padding_scheme: 'pkcs1v15',
  decrypt_hash_algorithm: 'sha2-512',
  encrypt_hash_algorithm: 'sha2-512',
  type: 'rsa-2048',
  convergent_encryption: true,
  prehashed: true,
  hash_algorithm: 'sha2-512',
  algorithm: 'sha2-512',
  signature_algorithm: 'pkcs1v15',
  marshaling_algorithm: 'jws',
  salt_length: 'hash',
  partial_failure_response_code: 207,
};
const sampleOf = (field: string): unknown => samples[field] ?? fox;

/** Returns `used` if nothing is said about a member, `warned` if a warning names it, and `refused` if an error names it. */
const outcomeOf = ({ status, body }: Answer, field: string): string => {
  const warned = (body.warnings ?? []).filter((warning: string) => warning.includes(field));
  if (status === 400 && body.errors?.some((error: string) => error.includes(field))) return 'refused';
  return status !== 200 ? `${status} ${JSON.stringify(body)}` : warned.length > 0 ? 'warned' : 'used';
};

describe('a member of a request that the operation knows', () => {
  before(async () => {
    at = await served();
    for (const [name, body] of Object.entries(keys)) expect((await post(`keys/${name}`, body)).status, name).to.equal(200);
    const { ciphertext } = await made('encrypt/aes', { plaintext: fox });
    const { signature } = await made('sign/ecdsa', { input: fox });
    for (const name of ['hmac', 'cmac', 'sign']) valid[name] = { input: fox };
    Object.assign(valid, {
      encrypt: { plaintext: fox },
      decrypt: { ciphertext },
      rewrap: { ciphertext },
      verify: { input: fox, signature },
    });
  });
  after(() => at.close());

  /** Fields of items that weaken the result if they are dropped. */
  const refusedBeside = ['associated_data', 'hash_algorithm', 'decrypt_hash_algorithm', 'encrypt_hash_algorithm'];
  const refusedInItems = ['signature_context', 'hash_algorithm', 'algorithm'];

  for (const name of Object.keys(keyOf)) {
    const { ofRequest, ofItem } = fieldsOf(name);
    for (const field of ofRequest.filter((each) => ofItem.includes(each) && each !== 'mac_length'))
      it(`has no effect beside a batch, in whose items it counts, and is named or refused: ${name} ${field}`, async () => {
        const answer = await post(`${name}/${keyOf[name]}`, { batch_input: [valid[name]], [field]: sampleOf(field) });
        expect(outcomeOf(answer, field)).to.equal(refusedBeside.includes(field) ? 'refused' : 'warned');
      });

    const known = new Set([...ofRequest, ...Object.keys(itemFields)]);
    for (const field of [...known].filter((each) => !ofItem.includes(each))) {
      const isRefused = refusedInItems.includes(field) && ofRequest.includes(field);
      it(`is ${isRefused ? 'refused' : 'warned of'} in an item, where only the request counts: ${name} ${field}`, async () => {
        const answer = await post(`${name}/${keyOf[name]}`, { batch_input: [{ ...valid[name], [field]: sampleOf(field) }] });
        expect(outcomeOf(answer, field)).to.equal(isRefused ? 'refused' : 'warned');
      });
    }

    it(`causes no warning if it is sent with the value that is in force: ${name}`, async () => {
      const takes = operations.get(name)?.takes ?? {};
      const isPadding = (field: string): boolean => field.includes('padding'); // refused, whatever its value, on keys without one
      const inForce = Object.entries(takes).flatMap(([field, { default: absent }]) =>
        isPadding(field) ? [] : [[field, absent ?? (field in samples ? '' : undefined)]],
      );
      const defaults = Object.fromEntries(inForce);
      for (const body of [
        { ...defaults, ...valid[name] },
        { ...defaults, batch_input: [valid[name]] },
      ]) {
        const answer = await post(`${name}/${keyOf[name]}`, body);
        expect([answer.status, answer.body.warnings]).to.deep.equal([200, null]);
      }
    });
  }

  const context = fox;
  for (const [path, body, field, outcome] of [
    ['encrypt/aes', { plaintext: fox }, 'context', 'warned'],
    ['encrypt/derived', { plaintext: fox }, 'context', 'used'],
    ['encrypt/rsa', { plaintext: fox }, 'context', 'warned'],
    ['encrypt/rsa', { plaintext: fox }, 'hash_algorithm', 'used'],
    ['encrypt/rsa', { plaintext: fox, padding_scheme: 'pkcs1v15' }, 'hash_algorithm', 'refused'],
    ['encrypt/aes', { plaintext: fox }, 'hash_algorithm', 'refused'],
    ['decrypt/aes', { ciphertext: 'svc:v1:AAAA' }, 'hash_algorithm', 'refused'],
    ['rewrap/aes', { ciphertext: 'svc:v1:AAAA' }, 'hash_algorithm', 'refused'],
    ['rewrap/rsa', { ciphertext: 'svc:v1:AAAA' }, 'hash_algorithm', 'refused'],
    ['rewrap/rsa', { ciphertext: 'svc:v1:AAAA' }, 'associated_data', 'refused'],
    ['rewrap/aes', { ciphertext: 'svc:v1:AAAA' }, 'decrypt_hash_algorithm', 'refused'],
    ['rewrap/aes', { ciphertext: 'svc:v1:AAAA' }, 'encrypt_hash_algorithm', 'refused'],
    ['datakey/wrapped/rsa', {}, 'hash_algorithm', 'used'],
    ['datakeys/wrapped/rsa', { count: 2 }, 'hash_algorithm', 'used'],
    ['datakeys/wrapped/aes', { count: 2 }, 'hash_algorithm', 'refused'],
    ['datakeys/wrapped/rsa', { count: 2 }, 'associated_data', 'refused'],
    ['datakeys/wrapped/aes', { count: 2 }, 'associated_data', 'used'],
    ['datakeys/wrapped/aes', { count: 2 }, 'context', 'warned'],
    ['datakeys/wrapped/aes', { count: 2 }, 'nonce', 'warned'],
    ['datakey/wrapped/aes', {}, 'context', 'warned'],
    ['datakey/wrapped/derived', {}, 'context', 'used'],
    ['encrypt/aes', { plaintext: fox }, 'nonce', 'refused'],
    ['encrypt/aes', { plaintext: fox }, 'padding_scheme', 'refused'],
    ['encrypt/rsa', { plaintext: fox }, 'padding_scheme', 'used'],
    ['encrypt/rsa', { plaintext: fox }, 'associated_data', 'refused'],
    ['encrypt/aes', { plaintext: fox }, 'type', 'warned'],
    ['encrypt/rsa', { plaintext: fox }, 'type', 'used'],
    ['encrypt/made', { plaintext: fox }, 'type', 'used'],
    ['encrypt/derived', { plaintext: fox, context }, 'convergent_encryption', 'warned'],
    ['encrypt/convergent', { plaintext: fox, context }, 'convergent_encryption', 'used'],
    ['encrypt/made-convergent', { plaintext: fox, context }, 'convergent_encryption', 'used'],
    ['encrypt/aes', { plaintext: fox }, 'partial_failure_response_code', 'warned'],
    ['sign/ecdsa', { input: fox }, 'context', 'warned'],
    ['sign/ed25519-derived', { input: fox }, 'context', 'used'],
    ['sign/ecdsa', { input: fox }, 'signature_context', 'refused'],
    ['sign/rsa', { input: fox }, 'signature_context', 'refused'],
    ['sign/ml-dsa', { input: fox }, 'signature_context', 'refused'],
    ['sign/hybrid', { input: fox }, 'signature_context', 'refused'],
    ['sign/ed25519', { input: fox }, 'signature_context', 'used'],
    ['sign/ed25519', { input: fox, hash_algorithm: 'sha2-384' }, 'hash_algorithm', 'warned'],
    ['sign/ed25519/sha2-384', { input: fox }, 'urlalgorithm', 'warned'],
    ['sign/ed25519/sha2-256', { input: fox }, 'urlalgorithm', 'used'],
    ['sign/ml-dsa', { input: fox }, 'hash_algorithm', 'warned'],
    ['sign/hybrid', { input: fox }, 'hash_algorithm', 'warned'],
    ['sign/ecdsa', { input: fox }, 'hash_algorithm', 'used'],
    ['sign/ecdsa', { input: fox }, 'signature_algorithm', 'warned'],
    ['sign/ed25519', { input: fox }, 'signature_algorithm', 'warned'],
    ['sign/rsa', { input: fox }, 'signature_algorithm', 'used'],
    ['sign/ecdsa', { input: fox }, 'salt_length', 'warned'],
    ['sign/rsa', { input: fox }, 'salt_length', 'used'],
    ['sign/rsa', { input: fox, signature_algorithm: 'pkcs1v15' }, 'salt_length', 'warned'],
    ['sign/ecdsa', { input: fox }, 'marshaling_algorithm', 'used'],
    ['sign/ml-dsa', { input: fox }, 'prehashed', 'refused'],
    ['cmac/cmac', { input: fox }, 'mac_length', 'used'],
    ['keys/aes2', {}, 'key_size', 'refused'],
    ['keys/aes3', {}, 'parameter_set', 'warned'],
    ['keys/aes4', {}, 'hybrid_key_type_pqc', 'warned'],
    ['keys/aes5', {}, 'hybrid_key_type_ec', 'warned'],
    ['keys/mldsa6', { type: 'ml-dsa', parameter_set: '44' }, 'hybrid_key_type_ec', 'warned'],
    ['keys/aes7', {}, 'managed_key_name', 'warned'],
    ['keys/aes8', {}, 'managed_key_id', 'warned'],
    ['keys/aes9', {}, 'convergent_encryption', 'refused'],
    ['keys/aes/rotate', {}, 'managed_key_name', 'warned'],
    ['keys/aes/config', {}, 'min_mac_length', 'refused'],
  ] as const)
    it(`is ${outcome} depending on the key: ${path} ${JSON.stringify(body)} ${field}`, async () => {
      const more: Readonly<Record<string, unknown>> = {
        key_size: 64,
        parameter_set: '44',
        hybrid_key_type_pqc: 'ml-dsa',
        min_mac_length: 8,
      };
      const sent = {
        hash_algorithm: 'sha2-512',
        ...body,
        ...(field !== 'urlalgorithm' && !(field in body) && { [field]: more[field] ?? sampleOf(field) }),
      };
      const { hash_algorithm: hash, ...others } = sent;
      const asked = field === 'hash_algorithm' ? { ...others, hash_algorithm: hash } : others;
      expect(
        outcomeOf(await post(path, asked), field === 'convergent_encryption' && outcome === 'refused' ? 'convergent' : field),
      ).to.equal(outcome);
    });

  for (const [kind, unused] of [
    ['signature', ['mac_length']],
    [
      'hmac',
      ['context', 'signature_context', 'prehashed', 'signature_algorithm', 'marshaling_algorithm', 'salt_length', 'mac_length'],
    ],
    [
      'cmac',
      [
        'context',
        'signature_context',
        'prehashed',
        'signature_algorithm',
        'marshaling_algorithm',
        'salt_length',
        'hash_algorithm',
      ],
    ],
  ] as const)
    it(`is warned of if it has no effect on the ${kind} to verify`, async () => {
      const key = kind === 'signature' ? 'ecdsa' : kind;
      const { [kind]: value } =
        kind === 'signature' ? await made('sign/ecdsa', { input: fox }) : await made(`${kind}/${key}`, { input: fox });
      const others = Object.fromEntries(unused.map((field) => [field, sampleOf(field)]));
      for (const body of [{ input: fox, [kind]: value }, { batch_input: [{ input: fox, [kind]: value }] }]) {
        const { warnings } = (await post(`verify/${key}`, { ...body, ...others })).body;
        for (const field of unused.filter((each) => !('batch_input' in body) || each !== 'context'))
          expect(warnings.join(), field).to.include(field);
      }
      expect((await post(`verify/${key}`, { input: fox, [kind]: value })).body.warnings).to.equal(null);
      for (const field of unused.filter((each) => each === 'context' || each === 'mac_length')) {
        const one = { input: fox, [kind]: value, [field]: sampleOf(field) };
        const { body } = await post(`verify/${key}`, { batch_input: [{ ...one, [field]: '' }, one] });
        expect(body.warnings, field).to.deep.equal([`These parameters have no effect on the ${kind} to verify: [${field}]`]);
      }
    });

  it('is named in the answer to a refused request too', async () => {
    const body = { batch_input: [{ plaintext: fox }], associated_data: fox, key_version: 1, unheard: 1 };
    const answer = await post('encrypt/aes', body);
    expect(answer.status).to.equal(400);
    expect(answer.body).to.deep.equal({
      errors: ['associated_data has no effect beside batch_input: set it in the items'],
      warnings: [
        'Endpoint ignored these unrecognized parameters: [unheard]',
        'These parameters have no effect beside batch_input: [key_version]',
      ],
    });
    const invalid = await post('keys/x', { derived: 'maybe', unheard: 1 });
    expect(invalid.body.warnings).to.deep.equal(['Endpoint ignored these unrecognized parameters: [unheard]']);
    expect((await post('encrypt/aes', { plaintext: '!' })).body).to.have.all.keys('errors');
    expect((await at.ask('POST sys/auth/x', { body: { type: 'nosuch', unheard: 1 } })).body).to.have.all.keys(
      'errors',
      'warnings',
    );
  });

  for (const [path, request, item, outcome] of [
    ['sign/ecdsa/sha2-512', {}, { hash_algorithm: 'sha2-512' }, 'warned'],
    ['sign/ecdsa/sha2-512', {}, { hash_algorithm: 'sha2-256' }, 'refused'],
    ['sign/ecdsa/sha2-512', { hash_algorithm: 'sha2-256' }, { hash_algorithm: 'sha2-256' }, 'refused'],
    ['sign/ecdsa/sha2-512', {}, { algorithm: 'sha2-512' }, 'warned'],
    ['sign/ecdsa', { urlalgorithm: 'sha2-512' }, { algorithm: 'sha2-256' }, 'refused'],
    ['sign/ecdsa', {}, { urlalgorithm: 'sha2-512' }, 'refused'],
    ['sign/ecdsa', {}, { urlalgorithm: 'sha2-256' }, 'warned'],
    ['sign/ecdsa', { algorithm: 'sha2-512' }, { algorithm: 'sha2-512' }, 'refused'],
    ['sign/ecdsa', { algorithm: 'sha2-512', hash_algorithm: '' }, { algorithm: 'sha2-512' }, 'warned'],
    ['hmac/hmac/sha2-512', {}, { algorithm: 'sha2-512' }, 'warned'],
    ['hmac/hmac/sha2-512', {}, { algorithm: 'sha2-256' }, 'refused'],
    ['hmac/hmac/sha2-512', { algorithm: 'sha2-256' }, { algorithm: 'sha2-256' }, 'refused'],
    ['hmac/hmac', {}, { urlalgorithm: 'sha2-512' }, 'refused'],
    ['verify/hmac/sha2-512', {}, { algorithm: 'sha2-512', hmac: 'sha2-512' }, 'warned'],
    ['verify/hmac/sha2-512', {}, { hash_algorithm: 'sha2-256', hmac: 'sha2-512' }, 'refused'],
    ['verify/hmac', { algorithm: 'sha2-512' }, { algorithm: 'sha2-512', hmac: 'sha2-512' }, 'warned'],
    ['verify/hmac', { algorithm: 'sha2-512' }, { hash_algorithm: 'sha2-256', hmac: 'sha2-512' }, 'refused'],
    ['encrypt/aes', { hash_algorithm: '' }, { hash_algorithm: 'sha2-256' }, 'used'],
  ] as const)
    it(`is ${outcome} as a hash in an item: ${path} ${JSON.stringify(request)} ${JSON.stringify(item)}`, async () => {
      const { hmac } = await made('hmac/hmac/sha2-512', { input: fox });
      const one = { input: fox, plaintext: fox, ...item, ...('hmac' in item && { hmac }) };
      const first = { ...one, hash_algorithm: undefined, algorithm: undefined, urlalgorithm: undefined };
      const field = Object.keys(item)[0] ?? '';
      for (const batch_input of [[one], [first, one, one]])
        expect(outcomeOf(await post(path, { ...request, batch_input }), field)).to.equal(outcome);
    });

  for (const [path, request, item, overridden] of [
    ['cmac/cmac/8', { mac_length: 4 }, undefined, 'mac_length'],
    ['cmac/cmac/8', { mac_length: '8' }, undefined, undefined],
    ['cmac/cmac/0', { mac_length: 16 }, undefined, undefined],
    ['cmac/cmac/0', { mac_length: 8 }, undefined, 'mac_length'],
    ['cmac/cmac', { mac_length: 4, url_mac_length: 8 }, undefined, 'mac_length'],
    ['cmac/cmac/8', {}, { mac_length: 16 }, 'mac_length'],
    ['cmac/cmac/8', {}, { mac_length: '0x8' }, undefined],
    ['cmac/cmac/8', {}, { mac_length: 0 }, undefined],
    ['cmac/cmac/8', { mac_length: 4 }, {}, 'mac_length'],
    ['cmac/cmac', { mac_length: 8 }, { mac_length: 4 }, undefined],
    ['hmac/hmac/sha2-512', { algorithm: 'sha2-256' }, undefined, 'algorithm'],
    ['hmac/hmac/sha2-512', { algorithm: 'sha2-512' }, undefined, undefined],
    ['sign/ecdsa/sha2-512', { hash_algorithm: 'sha2-384' }, undefined, 'hash_algorithm'],
    ['sign/ecdsa/sha2-512', { hash_algorithm: 'sha2-256' }, {}, 'hash_algorithm'],
    ['sign/ecdsa', { algorithm: 'sha2-512' }, undefined, 'algorithm'],
    ['sign/ecdsa', { algorithm: 'sha2-512', hash_algorithm: 'sha2-512' }, undefined, undefined],
    ['hash/sha2-512', { algorithm: 'sha2-256' }, undefined, 'algorithm'],
    ['random/32', { bytes: 16 }, undefined, 'bytes'],
    ['random/platform/32', { bytes: '32' }, undefined, undefined],
    ['random', { bytes: 16 }, undefined, undefined],
  ] as const)
    it(`is warned of if another field overrides it: ${path} ${JSON.stringify(request)} ${JSON.stringify(item)}`, async () => {
      const input = path.startsWith('random') ? {} : { input: fox };
      const body = item === undefined ? { ...input, ...request } : { ...request, batch_input: [input, { ...input, ...item }] };
      const answer = await post(path, body);
      const warning = `These parameters have no effect because another value is in force: [${overridden}]`;
      expect([answer.status, answer.body.warnings]).to.deep.equal([200, overridden === undefined ? null : [warning]]);
    });

  for (const [path, body, overridden] of [
    ['hash/sha2-512', { algorithm: 'sha2-256' }, 'algorithm'],
    ['hash/sha2-512', { algorithm: 'sha2-512' }, undefined],
    ['hash', { algorithm: 'sha2-512' }, undefined],
    ['random/32', { bytes: 16 }, 'bytes'],
    ['random/platform/16', { bytes: '16' }, undefined],
    ['random/16', {}, undefined],
  ] as const)
    it(`is warned of in sys/tools too if another field overrides it: ${path} ${JSON.stringify(body)}`, async () => {
      const answer = await at.ask(`POST sys/tools/${path}`, {
        body: { ...body, ...(path.startsWith('hash') && { input: fox }) },
      });
      const warning = `These parameters have no effect because another value is in force: [${overridden}]`;
      expect([answer.status, answer.body.warnings]).to.deep.equal([200, overridden === undefined ? null : [warning]]);
    });

  it('is refused as a hash in one of two items that disagree, whichever comes first', async () => {
    for (const hashes of [
      ['sha2-256', 'sha2-512'],
      ['sha2-512', 'sha2-256'],
      ['sha2-512', 'sha2-512', 'sha2-256'],
    ]) {
      const batch_input = hashes.map((hash_algorithm) => ({ input: fox, hash_algorithm }));
      const { status, body } = await post('sign/ecdsa/sha2-512', { batch_input });
      expect([status, body.errors]).to.deep.equal([
        400,
        [`'[${hashes.indexOf('sha2-256')}].hash_algorithm' has no effect in an item of batch_input: set it in the request`],
      ]);
    }
  });

  it('of an item is warned of wherever it stands in the batch', async () => {
    const batch_input = [...Array(200).fill(valid['sign']), { ...valid['sign'], context }];
    const { body } = await post('sign/ecdsa', { batch_input });
    expect(body.warnings).to.deep.equal(['These parameters have no effect on this key: [context]']);
  });

  it('is kept from a caller without the rights', async () => {
    await at.ask('POST sys/policies/acl/creates', { body: { policy: 'path "transit/encrypt/*" { capabilities = ["create"] }' } });
    const { auth } = (await at.ask('POST auth/token/create', { body: { policies: ['creates'] } })).body;
    const answer = await at.ask('POST transit/encrypt/aes', {
      token: auth.client_token,
      body: { plaintext: fox, context, unheard: 1 },
    });
    expect([answer.status, answer.body]).to.deep.equal([403, { errors: ['permission denied'] }]);
  });
});

describe('a value in a batch of one', () => {
  before(async () => {
    at = await served();
    for (const name of Object.values(keyOf)) await post(`keys/${name}`, keys[name] ?? {});
    const { ciphertext } = await made('encrypt/aes', { plaintext: fox });
    const { signature } = await made('sign/ecdsa', { input: fox });
    Object.assign(valid, { decrypt: { ciphertext }, rewrap: { ciphertext }, verify: { input: fox, signature } });
  });
  after(() => at.close());

  const values = [
    1,
    0,
    -0,
    2,
    -1,
    1.5,
    1e20,
    '1',
    '0x1',
    ' 1',
    '2',
    '',
    'x',
    'AAAA',
    5,
    true,
    false,
    't',
    null,
    {},
    { a: 1 },
    [],
    [1],
  ];
  for (const name of Object.keys(keyOf)) {
    const { ofRequest, ofItem } = fieldsOf(name);
    for (const field of ofRequest.filter((each) => ofItem.includes(each)))
      it(`is read as in a single request: ${name} ${field}`, async () => {
        for (const value of values) {
          const one = { ...valid[name], [field]: value };
          const single = await post(`${name}/${keyOf[name]}`, one);
          const batch = await post(`${name}/${keyOf[name]}`, { batch_input: [one] });
          const told = JSON.stringify(value);
          expect(batch.status, `${told}: ${single.text} ${batch.text}`).to.equal(single.status);
          if (single.status === 200)
            expect(batch.body.data.batch_results[0], told).to.include.keys(...Object.keys(single.body.data));
        }
      });
  }

  it('is denied by a policy whatever its spelling', async () => {
    const rules = 'path "transit/*" { capabilities = ["update"] }\npath "transit/cmac/cmac/8" { capabilities = ["deny"] }';
    await at.ask('POST sys/policies/acl/no-short', { body: { policy: rules } });
    const { auth } = (await at.ask('POST auth/token/create', { body: { policies: ['no-short'] } })).body;
    for (const mac_length of [8, '8', '0x8']) {
      const body = { batch_input: [{ input: fox, mac_length }] };
      const { status } = await at.ask('POST transit/cmac/cmac', { token: auth.client_token, body });
      expect(status, String(mac_length)).to.equal(403);
    }
  });
});

describe('an item of a batch', () => {
  const texts = ['', 'AAAA', fox];
  const versions = [0, 1, 2, 3, -1, '1', '0x2', '', true, null];
  const macLengths = [0, 4, 8, 16, 3, 17, '8', '0x8', '', true];

  /** Operations with equal results for equal inputs: the values of the fields of a request for all items, and of an item. */
  let cases: Readonly<Record<string, { readonly request: Choices; readonly item: Choices }>>;
  type Choices = Readonly<Record<string, readonly unknown[]>>;

  before(async () => {
    at = await served();
    for (const name of ['convergent', 'ed25519-derived', 'hmac', 'cmac', 'aes']) {
      await post(`keys/${name}`, keys[name] ?? {});
      await post(`keys/${name}/rotate`, {});
    }
    const all = async (path: string, member: string, bodies: readonly object[]): Promise<readonly string[]> =>
      Promise.all(bodies.map(async (body) => (await made(path, body))[member] ?? expect.fail(path)));
    const plaintext = fox;
    const ciphertexts = await all('encrypt/aes', 'ciphertext', [
      { plaintext, key_version: 1 },
      { plaintext },
      { plaintext, associated_data: fox },
    ]);
    const hmacs = await all('hmac/hmac', 'hmac', [
      { input: fox },
      { input: '', key_version: 1 },
      { input: fox, algorithm: 'sha2-512' },
    ]);
    const cmacs = await all('cmac/cmac', 'cmac', [{ input: fox }, { input: '', key_version: 1 }, { input: fox, mac_length: 8 }]);
    const signatures = await all('sign/ed25519-derived', 'signature', [
      { input: fox, context: fox },
      { input: fox, context: 'AAAA', key_version: 1 },
      { input: '', context: fox, signature_context: fox },
    ]);
    const odd = ['', 'x', null, 5];
    const key_version = versions;
    const signature_context = texts;
    cases = {
      'encrypt/convergent': {
        request: {},
        item: {
          plaintext: [...texts, ...odd],
          context: [fox, 'AAAA', 'AAAB'],
          associated_data: texts,
          key_version,
          nonce: ['', fox],
        },
      },
      'decrypt/aes': {
        request: {},
        item: { ciphertext: [...ciphertexts, ...odd], associated_data: texts, padding_scheme: ['', 'oaep'] },
      },
      'hmac/hmac': { request: { key_version, algorithm: ['sha2-256', 'sha2-512'] }, item: { input: [...texts, ...odd] } },
      'cmac/cmac': {
        request: { key_version, mac_length: macLengths },
        item: { input: [...texts, ...odd], mac_length: macLengths },
      },
      'cmac/cmac/8': { request: { mac_length: macLengths }, item: { input: texts, mac_length: macLengths } },
      'sign/ed25519-derived': {
        request: { key_version, signature_context, prehashed: [false, 'false'] },
        item: { input: [...texts, ...odd], context: texts },
      },
      'verify/hmac': {
        request: { algorithm: ['sha2-256', 'sha2-512'], mac_length: macLengths },
        item: { input: texts, hmac: [...hmacs, ...odd] },
      },
      'verify/cmac': {
        request: { mac_length: macLengths },
        item: { input: texts, cmac: [...cmacs, ...odd], mac_length: macLengths },
      },
      'verify/ed25519-derived': {
        request: { signature_context },
        item: { input: texts, signature: [...signatures, ...odd], context: texts },
      },
    };
  });
  after(() => at.close());

  /** Fields without which a batch is refused as a whole, if other items have them. */
  const inAllItems = ['context', 'signature', 'hmac', 'cmac'];
  const choice = (choices: Choices): fc.Arbitrary<Readonly<Record<string, unknown>>> =>
    fc.record(Object.fromEntries(Object.entries(choices).map(([field, values]) => [field, fc.constantFrom(...values)])), {
      requiredKeys: Object.keys(choices).filter((field) => inAllItems.includes(field)),
    });

  /** Returns the result of an item as that of a request of its own. */
  const asSingle = ({ reference: _, error, publickey, ...result }: Record<string, unknown>) =>
    error === undefined ? { ...result, ...(publickey !== undefined && { public_key: publickey }) } : { error };

  for (const path of [
    'encrypt/convergent',
    'decrypt/aes',
    'hmac/hmac',
    'cmac/cmac',
    'cmac/cmac/8',
    'sign/ed25519-derived',
    'verify/hmac',
    'verify/cmac',
    'verify/ed25519-derived',
  ])
    it(`has the result of a request of its own, whatever the other items are: ${path}`, async () => {
      const { request, item } = cases[path] ?? expect.fail(path);
      let compared = 0;
      await fc.assert(
        fc.asyncProperty(choice(request), fc.array(choice(item), { minLength: 1, maxLength: 6 }), async (shared, items) => {
          const batch = await post(path, { ...shared, batch_input: items.map((each, index) => ({ ...each, reference: index })) });
          // A batch with a member of the wrong type, or without any proof to verify, is refused as a whole.
          if (batch.body.errors !== undefined) return;
          const results: Record<string, unknown>[] = batch.body.data.batch_results;
          expect(results.map(({ reference }) => reference)).to.deep.equal(items.map((_, index) => String(index)));
          for (const [index, each] of items.entries()) {
            const single = await post(path, { ...shared, ...each });
            const { errors, data } = single.body;
            const result = asSingle(results[index] ?? {});
            if (single.status === 200) expect(result, JSON.stringify(each)).to.deep.equal(data);
            else expect(result, JSON.stringify([each, errors])).to.have.property('error');
            if (single.status === 200) compared += 1;
          }
        }),
        { numRuns: 100 },
      );
      expect(compared).to.be.above(0);
    });
});

describe('a batch', () => {
  before(async () => {
    at = await served();
    for (const name of ['aes', 'derived', 'ecdsa']) await post(`keys/${name}`, keys[name] ?? {});
  });
  after(() => at.close());

  const parse = 'failed to parse batch input: ';
  const ofKind = (member: string, kind: string, given: string): string =>
    `${parse}'[0].${member}' expected type '${kind}', got unconvertible type '${given}'`;
  for (const [operation, batch_input, message] of [
    ['encrypt', [], 'missing batch input to process'],
    ['decrypt', [], 'missing batch input to process'],
    ['rewrap', [], 'missing batch input to process'],
    ['encrypt', 'x', `${parse}source data must be an array or slice, got string`],
    ['decrypt', { a: 1 }, `${parse}source data must be an array or slice, got map`],
    ['rewrap', 5, `${parse}source data must be an array or slice, got number`],
    ['encrypt', false, `${parse}source data must be an array or slice, got boolean`],
    ['encrypt', [5], `${parse}[0] expected a map, got 'number'`],
    ['decrypt', [{ ciphertext: 'x' }, null], `${parse}[1] expected a map, got 'null'`],
    ['rewrap', [[]], `${parse}[0] expected a map, got 'array'`],
    ['encrypt', [{ plaintext: {} }, 5], ofKind('plaintext', 'string', 'map')],
    ['decrypt', [{ ciphertext: [1] }], ofKind('ciphertext', 'string', 'array')],
    ['rewrap', [{ ciphertext: 'x', key_version: 1.5 }], ofKind('key_version', 'int', 'number')],
    ['encrypt', [{ plaintext: fox, key_version: 'x' }], ofKind('key_version', 'int', 'string')],
    ['encrypt', [{ plaintext: fox, reference: {} }], ofKind('reference', 'string', 'map')],
    ['encrypt', [{ plaintext: fox, padding_scheme: 'x'.repeat(65_537) }], `${parse}'[0].padding_scheme' is too long`],
    ['encrypt', Array(100_001).fill({}), 'batch input holds more than 100000 items'],
  ] as const)
    it(`is refused as a whole: ${operation} of ${JSON.stringify(batch_input).slice(0, 60)}: ${message}`, async () => {
      const { status, body } = await post(`${operation}/aes`, { batch_input });
      expect([status, body.errors]).to.deep.equal([400, [message]]);
    });

  it('creates no key if it is refused', async () => {
    for (const batch_input of [[], [{ plaintext: fox, context: fox }, { plaintext: fox }], [{ plaintext: {} }], [{}]])
      expect((await post('encrypt/unmade', { batch_input })).status).to.equal(400);
    expect((await at.ask('GET transit/keys/unmade')).status).to.equal(404);
  });

  it('that is null counts as absent', async () => {
    expect((await post('encrypt/aes', { plaintext: fox, batch_input: null })).status).to.equal(200);
    expect((await post('encrypt/aes', { batch_input: null })).body.errors).to.deep.equal(['missing plaintext to encrypt']);
  });

  it('is answered or refused, for any JSON', () =>
    fc.assert(
      fc.asyncProperty(
        fc.oneof(fc.jsonValue(), fc.array(fc.dictionary(fc.constantFrom(...Object.keys(itemFields)), fc.jsonValue()))),
        fc.constantFrom('encrypt/aes', 'decrypt/derived', 'rewrap/aes', 'sign/ecdsa', 'verify/ecdsa', 'hmac/aes', 'cmac/aes'),
        async (batch_input, path) => {
          expect((await post(path, { batch_input })).status).to.be.oneOf([200, 400]);
        },
      ),
    ));
});
