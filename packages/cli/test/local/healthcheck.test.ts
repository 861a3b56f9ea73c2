import { expect } from 'chai';
import { checkHealth } from '../../src/local/healthcheck.ts';

/** A node whose health has this code, unless the query names another one by `parameter`. */
const nodeWith =
  (status: number, parameter = ''): typeof fetch =>
  async (url) =>
    new Response('{}', { status: Number(new URL(String(url)).searchParams.get(parameter) ?? status) });

describe('healthcheck', () => {
  for (const [node, code, send] of [
    ['an active node', 0, nodeWith(200)],
    ['a node of a secondary', 0, nodeWith(472, 'drsecondarycode')],
    ['a sealed node', 2, nodeWith(503, 'sealedcode')],
    ['a removed node', 2, nodeWith(530, 'removedcode')],
    ['a node without contact with the active one', 2, nodeWith(474, 'haunhealthycode')],
    ['a node that does not answer', 1, () => Promise.reject(new Error('connection refused'))],
  ] as const)
    it(`exits with ${code} for ${node}`, async () => {
      expect(await checkHealth('http://127.0.0.1:8200', send)).to.equal(code);
    });
});
