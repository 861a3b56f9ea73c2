import { expect } from 'chai';
import { allRoutes } from '../../src/routes.ts';
import { type Served, served } from '../served.ts';
import { TestMetrics } from '../test-metrics.ts';

describe('the length of texts', () => {
  it('is limited except for data, whose operations treat a text of any length in linear time', () => {
    const declared = allRoutes(new TestMetrics())
      .flatMap(({ operations }) => Object.values(operations))
      .flatMap(({ takes, byType = {} }) => [takes ?? {}, ...Object.values(byType).map((each) => each.takes ?? {})])
      .flatMap((takes) => Object.entries(takes));
    const long = declared.flatMap(([name, field]) => (field.long === true ? [name] : []));
    expect([...new Set(long)].sort()).to.deep.equal([
      ...['associated_data', 'backup', 'certificate_chain', 'ciphertext', 'cmac', 'context', 'csr', 'hmac', 'input'],
      ...['nonce', 'plaintext', 'policy', 'rules', 'signature', 'signature_context'],
    ]);
  });

  it('counts towards the memory for values in operations that parse such a text', () => {
    const parsed = (['backup', 'policy'] as const).map((field) =>
      allRoutes(new TestMetrics())
        .flatMap(({ operations }) => Object.values(operations))
        .filter(({ takes = {} }) => field in takes),
    );
    for (const operations of parsed) {
      expect(operations).to.have.length.of.at.least(2);
      for (const operation of operations) expect(operation, operation.name).to.include({ parsesText: true });
    }
  });

  describe('of a request', () => {
    let at: Served;
    beforeEach(async () => {
      at = await served();
    });
    afterEach(() => at.close());

    it('of JSON bounds its members as those of an object in the body', async () => {
      await at.ask('POST sys/auth/ar', { body: { type: 'approle' } });
      await at.ask('POST auth/ar/role/r', { body: {} });
      const membersOf = (count: number) =>
        JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, i) => [`name-${i}`, ''])));
      const path = 'POST auth/ar/role/r/secret-id';
      expect((await at.ask(path, { body: { metadata: membersOf(64) } })).status).to.equal(200);
      const { status, body: refused } = await at.ask(path, { body: { metadata: membersOf(65) } });
      expect([status, refused.errors]).to.deep.equal([
        400,
        ['Field validation failed: metadata has more than 64 members in an object'],
      ]);
    });

    it('is checked before the text is used, also if the text is JSON', async () => {
      await at.ask('POST sys/auth/ar', { body: { type: 'approle' } });
      await at.ask('POST auth/ar/role/r', { body: {} });
      const metadata = JSON.stringify(Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`name-${i}`, ''])));
      for (const [path, body, field] of [
        ['auth/ar/role/r/secret-id', { metadata }, 'metadata'],
        ['auth/token/create', { display_name: '!'.repeat(100_000) }, 'display_name'],
        ['auth/token/create', { meta: { a: 'x'.repeat(100_000) } }, 'meta'],
      ] as const) {
        const { status, body: refused } = await at.ask(`POST ${path}`, { body });
        expect([status, refused.errors]).to.deep.equal([
          400,
          [`Field validation failed: error converting input for field "${field}": more than 65536 characters`],
        ]);
      }
    });
  });
});
