import { Readable } from 'node:stream';
import { expect } from 'chai';
import {
  authReply,
  dataReply,
  errorsBody,
  keptDataReply,
  longDataReply,
  noContentReply,
  replyWithWarnings,
} from '../../src/reply/envelope.ts';
import { bodyText, type Reply } from '../../src/reply/reply.ts';

const warningsOf = (reply: Reply): unknown => JSON.parse(bodyText(reply) ?? '').warnings;

describe('a warning that is added to a reply', () => {
  it('follows the warnings that the reply has', () => {
    expect(warningsOf(replyWithWarnings(dataReply('{"warnings":null}'), ['late']))).to.deep.equal(['late']);
    expect(warningsOf(replyWithWarnings(dataReply('{}', ['early']), ['early', 'late']))).to.deep.equal(['early', 'late']);
  });

  it('follows the warnings of a reply in pieces, whose data stays the same', () => {
    const data = Buffer.from('{"a":",\\"wrap_info\\":null,\\"warnings\\":null"}');
    for (const warnings of [[], ['early']]) {
      const warned = replyWithWarnings(keptDataReply(data, warnings), ['late']);
      expect(warningsOf(warned)).to.deep.equal([...warnings, 'late']);
      expect(warned.body).to.include(data);
    }
  });

  it('follows them in an answer with a token too, whatever texts it and the warnings have', () => {
    const odd = ',"wrap_info":null,"warnings":null,"auth":{}';
    const auth = JSON.stringify({ client_token: 't', metadata: { odd } });
    const warned = replyWithWarnings(authReply(auth, [odd]), ['late', odd]);
    expect(JSON.parse(bodyText(warned) ?? '')).to.deep.include({ warnings: [odd, 'late'], auth: JSON.parse(auth) });
  });

  it('changes nothing else', () => {
    const reply = dataReply('{"a":"\\u2028 \\"warnings\\":null","b":[1,2.5]}');
    const { warnings, ...rest } = JSON.parse(String(replyWithWarnings(reply, ['late']).body));
    expect({ ...rest, warnings: null }).to.deep.equal(JSON.parse(String(reply.body)));
  });

  for (const reply of [
    noContentReply,
    { status: 400, body: errorsBody(['no']) },
    { status: 200, body: 'svc_up 1\n', headers: { 'Content-Type': 'text/plain' } },
    { status: 200, body: [Buffer.from('{}')] },
    longDataReply('{', Readable.from(['}'])),
  ])
    it(`leaves a reply as it is that has no place for it: ${reply.status} ${'body' in reply ? reply.body : ''}`, () => {
      expect(replyWithWarnings(reply, ['late'])).to.deep.equal(reply);
    });
});
