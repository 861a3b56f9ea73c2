import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import type { GuardedOperation } from '../src/operation/operation.ts';
import { transitCertificateRoutes } from '../src/transit/certificates.ts';
import { transitDataRoutes } from '../src/transit/data.ts';
import { transitKeyRoutes } from '../src/transit/keys.ts';
import { transitTransferRoutes } from '../src/transit/transfers.ts';
import { type Served, served } from './served.ts';

const fox = Buffer.from('the quick brown fox').toString('base64');
const open = { exportable: true, allow_plaintext_backup: true };
/**
 * One key of each kind that behaves differently, by name. RSA keys above 2,048 bits are not created, since their generation takes seconds.
 */
const keys: Readonly<Record<string, object>> = {
  aead: {},
  'aead-128': { type: 'aes128-gcm96' },
  'aead-derived': { derived: true },
  'aead-convergent': { type: 'chacha20-poly1305', derived: true, convergent_encryption: true },
  hmac: { type: 'hmac', key_size: 64 },
  cmac: { type: 'aes256-cmac' },
  ed25519: { type: 'ed25519' },
  'ed25519-derived': { type: 'ed25519', derived: true },
  'ecdsa-p256': { type: 'ecdsa-p256' },
  'ecdsa-p521': { type: 'ecdsa-p521' },
  rsa: { type: 'rsa-2048' },
  'ml-dsa': { type: 'ml-dsa', parameter_set: '44' },
  hybrid: { type: 'hybrid', parameter_set: '44', hybrid_key_type_pqc: 'ml-dsa', hybrid_key_type_ec: 'ed25519' },
};

const texts = [
  '',
  '0',
  '1',
  '-1',
  '2',
  'v1',
  'latest',
  'true',
  'sha1',
  'sha2-512',
  'none',
  'pkcs1v15',
  'jws',
  'auto',
  'all',
  'hex',
  '1h',
  '!!',
  '\u0000',
  'svc:v1:AAAA',
  'svc:v1:',
  'AA==',
  fox,
  Buffer.alloc(64).toString('base64'),
  'a/b',
  'constructor',
];
const value = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...texts) },
  fc.constantFrom<unknown>(null, true, 0, -1, 1, 2 ** 31, 1e30, 0.5, [], {}, [''], { '': '' }),
  fc.string({ maxLength: 12 }),
);

/** An operation: its path with the names of its parameters, and the other fields that a request may send. */
interface Target {
  readonly verb: string;
  readonly path: string;
  readonly fields: readonly string[];
}

const fieldsOf = ({ takes = {} }: GuardedOperation): string[] => Object.keys(takes);
const targets: readonly Target[] = [
  ...[...transitKeyRoutes, ...transitCertificateRoutes, ...transitTransferRoutes].flatMap(({ path, operations }) =>
    Object.entries(operations).map(([verb, operation]) => ({ verb, path, fields: fieldsOf(operation as GuardedOperation) })),
  ),
  ...transitDataRoutes.flatMap(({ path, operations }) =>
    Object.entries(operations).map(([verb, operation]) => ({ verb, path, fields: fieldsOf(operation as GuardedOperation) })),
  ),
]
  // Left out: the first operation takes seconds; the second would delete the keys that the others need.
  .filter(({ verb, path }) => path !== 'wrapping_key' && verb !== 'DELETE');

describe('no request below a transit mount gets an internal error', () => {
  let server: Served;
  before(async () => {
    server = await served();
    for (const [name, body] of Object.entries(keys)) {
      const { status } = await server.ask(`POST transit/keys/${name}`, { body: { ...body, ...open } });
      expect(status, name).to.equal(200);
      expect((await server.ask(`POST transit/keys/${name}/rotate`)).status, name).to.equal(200);
    }
    const public_key = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ type: 'spki', format: 'pem' });
    const body = { type: 'rsa-2048', public_key };
    expect((await server.ask('POST transit/keys/public/import', { body })).status).to.equal(204);
  });
  after(() => server.close());

  const names = [...Object.keys(keys), 'public', 'unknown'];
  const request = (fields: readonly string[]) =>
    fc.record({
      name: fc.constantFrom(...names),
      params: fc.array(fc.constantFrom(...texts.filter((text) => /^[\w.-]+$/.test(text))), { minLength: 4, maxLength: 4 }),
      sent: fields.length === 0 ? fc.constant({}) : fc.dictionary(fc.constantFrom(...fields), value, { maxKeys: 5 }),
      item: fields.length === 0 ? fc.constant({}) : fc.dictionary(fc.constantFrom(...fields), value, { maxKeys: 4 }),
      batched: fc.boolean(),
    });

  const isSlow = (sent: Record<string, unknown>): boolean => /rsa-[34]/.test(JSON.stringify(sent));

  for (const { verb, path, fields } of targets) {
    it(`${verb} ${path}`, async () => {
      await fc.assert(
        fc.asyncProperty(request(fields), async ({ name, params, sent, item, batched }) => {
          if (isSlow(sent)) return;
          let next = 0;
          const filled = path.replace(/:(\w+)/g, (_, param: string) =>
            ['name', 'source', 'destination'].includes(param) ? name : (params[next++] ?? 'x'),
          );
          const body = batched && fields.includes('batch_input') ? { ...sent, batch_input: [item] } : sent;
          const query = new URLSearchParams(Object.entries(sent).map(([field, each]): [string, string] => [field, String(each)]));
          const { status, text } =
            verb === 'GET' || verb === 'LIST'
              ? await server.ask(`GET transit/${filled}?${verb === 'LIST' ? 'list=true&' : ''}${query}`)
              : await server.ask(`${verb} transit/${filled}`, { body });
          expect(status, `${filled} ${JSON.stringify(body)}: ${text}`).to.be.below(500);
        }),
        { numRuns: 120 },
      );
    });
  }

  for (const name of names.filter((name) => name !== 'unknown')) {
    it(`GET keys/${name} with every parameter, of every length`, async () => {
      for (const context of [...texts, fox.repeat(200)]) {
        const { status, text } = await server.ask(`GET transit/keys/${name}?context=${encodeURIComponent(context)}`);
        expect(status, `${context}: ${text}`).to.be.oneOf([200, 400, 404]);
      }
    });
  }
});
