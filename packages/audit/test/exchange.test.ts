import { createHmac } from 'node:crypto';
import { anything, type Reply } from '@transitd/http';
import { expect } from 'chai';
import type { AuditWriter } from '../src/audit-devices.ts';
import { Exchange } from '../src/exchange.ts';

const hash = (text: string): string => `hmac-sha256:${createHmac('sha256', 'key').update(text).digest('hex')}`;

/** Counts the turns of the event loop. */
class Turns {
  count = 0;
  #isOver = false;

  readonly #next = (): void => {
    this.count += 1;
    if (!this.#isOver) setImmediate(this.#next);
  };

  begin(): void {
    setImmediate(this.#next);
  }

  end(): void {
    this.#isOver = true;
  }
}

describe('Exchange', () => {
  const entries: { readonly text: string; readonly turns: number }[] = [];
  const turns = new Turns();
  const devices: AuditWriter = {
    names: ['main'],
    write: async (_, entryFor) => {
      entries.push({ text: entryFor('main'), turns: turns.count });
      turns.count = 0;
    },
    buildFailed: () => undefined,
  };
  const newExchange = () =>
    new Exchange({
      ...{ devices, auditKey: { hashOf: async () => hash }, mount: async () => ({ point: 'transit/', type: 'transit' }) },
      ...{ verb: 'POST', path: 'transit/encrypt/k', address: '127.0.0.1', port: 1, forwardedFrom: undefined, schema: anything },
    });
  beforeEach(() => entries.splice(0));
  before(() => turns.begin());
  after(() => turns.end());

  // Several time slices of hashing on the fastest machine.
  const texts = Array.from({ length: 30_000 }, (_, number) => `text ${number}`);
  const refused: Reply = { status: 400, body: JSON.stringify({ errors: ['no text 7 here'] }) };
  const succeeded: Reply = { status: 200, body: JSON.stringify({ wrap_info: null, auth: null, data: { texts } }) };
  for (const [what, reply] of [
    ['a refusal', refused],
    ['a long response', succeeded],
  ] as const) {
    it(`lets other work go on while it builds the entries of a long request and ${what}`, async () => {
      const exchange = newExchange();
      turns.count = 0;
      await exchange.begin({ texts });
      await exchange.end(reply);
      const [before, after] = entries.map(({ turns: during }) => during);
      expect(before).to.be.at.least(1);
      if (reply === succeeded) expect(after).to.be.at.least(1);
      const [asked, answered] = entries.map(({ text }) => JSON.parse(text));
      expect(Object.values(asked.request.data)).to.deep.equal([texts.map(hash)]);
      expect(answered.request).to.deep.equal(asked.request);
      if (reply === succeeded) expect(answered.response.data).to.deep.equal({ texts: texts.map(hash) });
      else expect(answered.error).to.equal(`no ${hash('text 7')} here`);
    });
  }
});
