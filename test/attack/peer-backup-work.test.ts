// @live
// A token that may only restore backups must not fill the memory of a node, or have it check numbers without end.
import { generatePrime } from 'node:crypto';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { type LiveServer, processMs, Workbench } from '../process/live-server.ts';

const secret = Buffer.alloc(32, 7).toString('base64');
const refusal = 'the backup cannot be restored: it is not JSON of the expected structure';

/** Returns a backup in the format of the peers. @param version - further members of its only version */
const backupOf = (version: string, archived: string): string =>
  Buffer.from(
    `{"policy":{"name":"x","type":0,"latest_version":1,"min_decryption_version":1,"keys":{"1":{"key":"${secret}","hmac_key":"${secret}","time":"2024-01-01T00:00:00Z"${version}}}},"archived_keys":{"keys":[${archived}]}}`,
  ).toString('base64');

/**
 * Returns different moduli of 4,096 bits, each the product of four of a few primes: nobody can tell it from a product of two, and primes of
 * 1,024 bits are found much sooner than those of 2,048.
 */
async function moduli(count: number): Promise<bigint[]> {
  const [primes, pairs, triples, products]: [bigint[], bigint[], bigint[], bigint[]] = [[], [], [], []];
  while (products.length < count) {
    const prime = await promisify<number, { bigint: true }, bigint>(generatePrime)(1024, { bigint: true });
    products.push(...triples.map((triple) => triple * prime).filter((product) => product >> 4095n === 1n));
    triples.push(...pairs.map((pair) => pair * prime));
    pairs.push(...primes.map((other) => other * prime));
    primes.push(prime);
  }
  return products.slice(0, count);
}

describe('a token that may only restore keys', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let server: LiveServer;
  let token = '';
  before(async () => {
    server = await bench.start({ dataDir: bench.folder(), env: { NODE_OPTIONS: '--max-old-space-size=300' } });
    const policy = 'path "transit/restore/*" { capabilities = ["update"] }';
    await server.call('POST', 'sys/policies/acl/restorer', { policy });
    const made = await server.call('POST', 'auth/token/create', { policies: ['restorer'], no_default_policy: true });
    token = made.string('auth.client_token');
  });
  after(() => bench.clean());

  for (const [what, backup] of [
    ['5 million empty certificates', backupOf(`,"certificate_chain":[${'"",'.repeat(4_900_000)}""]`, '')],
    ['5 million archived versions', backupOf('', `${'{},'.repeat(4_900_000)}{}`)],
    [
      'a million archived versions with different members',
      backupOf('', Array.from({ length: 1e6 }, (_, n) => `{"${n}":0}`).join()),
    ],
  ] as const)
    it(`is refused eight backups with ${what} at once, and the node still answers`, async () => {
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => server.call('POST', 'transit/restore/x', { backup }, token)),
      );
      for (const answer of answers) {
        expect(answer.status, answer.text).to.equal(400);
        expect(answer.text).to.contain(refusal);
      }
      expect((await server.call('GET', 'sys/health')).status).to.equal(200);
    });

  it('is told to continue later after the public halves that one request checks', async () => {
    const versions = await moduli(400);
    const time = '"time":"2024-01-01T00:00:00Z"';
    const keys = versions.map((n, at) => `"${at + 1}":{"rsa_public_key":{"N":${n},"E":65537},${time}}`).join();
    const json = `{"policy":{"name":"x","type":4,"latest_version":400,"min_decryption_version":1,"keys":{${keys}}},"archived_keys":null}`;
    const body = { backup: Buffer.from(json).toString('base64') };
    const first = await server.call('POST', 'transit/restore/x', body, token);
    expect(first.status, first.text).to.equal(503);
    expect(first.text).to.match(
      /3[12]\d of 400 key versions of the backup are checked; nothing was done: send the same request again/,
    );
    const second = await server.call('POST', 'transit/restore/x', body, token);
    expect(second.status, second.text).to.equal(204);
  });
});
