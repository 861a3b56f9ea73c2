import { Readable } from 'node:stream';
import { expect } from 'chai';
import { bodyText, encode } from '../../src/reply/encode.ts';
import {
  authReply,
  dataReply,
  type Envelope,
  noContentReply,
  Rendered,
  type Reply,
  replyWithWarnings,
  topLevelDataReply,
} from '../../src/reply/reply.ts';

const textOf = (reply: Reply): string => bodyText(reply) ?? '';
const warningsOf = (reply: Reply): unknown => JSON.parse(textOf(reply)).warnings;
const id = '00000000-0000-4000-8000-000000000000';
const unwrapped = (reply: Reply): Reply => ({ status: 200, unwrapped: textOf(reply) });
const wrapInfo = { token: 't', accessor: 'a', ttl: 1, creation_time: '1970-01-01T00:00:00.000Z', creation_path: 'p' };
const wrappingReply: Reply = { status: 200, envelope: { data: null, auth: null, wrapInfo, warnings: [] } };

describe('a warning that is added to a reply', () => {
  const forms: readonly {
    readonly name: string;
    readonly of: (data: Envelope['data'], warnings?: readonly string[]) => Reply;
  }[] = [
    { name: 'an envelope', of: dataReply },
    { name: 'an unwrapped response', of: (data, warnings) => unwrapped(dataReply(data, warnings)) },
  ];
  for (const { name, of } of forms) {
    it(`follows the warnings of ${name}`, () => {
      expect(warningsOf(replyWithWarnings(of({ warnings: null }), ['late']))).to.deep.equal(['late']);
      expect(warningsOf(replyWithWarnings(of({}, ['early']), ['early', 'late']))).to.deep.equal(['early', 'late']);
    });

    it(`changes nothing else of ${name}`, () => {
      const reply: Reply = { ...of(new Rendered('{"a":"\\u2028 \\"warnings\\":null","b":[1,2.5]}')), requestId: id };
      const warned = textOf(replyWithWarnings(reply, ['late']));
      expect(warned).to.equal(textOf(reply).replace(',"warnings":null,', ',"warnings":["late"],'));
    });
  }

  it('follows the warnings of a reply in pieces, whose data is not copied', () => {
    const data = Buffer.from('{"a":",\\"wrap_info\\":null,\\"warnings\\":null"}');
    for (const warnings of [[], ['early']]) {
      const warned = replyWithWarnings(dataReply(new Rendered([data]), warnings), ['late']);
      expect(warningsOf(warned)).to.deep.equal([...warnings, 'late']);
      expect(encode(warned).body).to.include(data);
    }
  });

  it('follows them in an answer with a token too, whatever texts it and the warnings have', () => {
    const odd = ',"wrap_info":null,"warnings":null,"auth":{}';
    const auth = { client_token: 't', metadata: { odd } };
    for (const reply of [authReply(auth, [odd]), unwrapped(authReply(auth, [odd]))])
      expect(JSON.parse(textOf(replyWithWarnings(reply, ['late', odd])))).to.deep.include({ warnings: [odd, 'late'], auth });
  });

  for (const [name, reply] of Object.entries({
    'a reply without content': noContentReply,
    'an error': { status: 400, errors: ['no'] },
    'a text': { status: 200, body: 'svc_up 1\n', headers: { 'Content-Type': 'text/plain' } },
    'JSON without an envelope': { status: 200, json: {} },
    'the reply to a wrapped response': { ...wrappingReply, requestId: id },
    'an unwrapped response without an envelope': { status: 200, unwrapped: '{}\n' },
  }) satisfies [string, Reply][])
    it(`leaves ${name} as it is`, () => {
      expect(bodyText(replyWithWarnings(reply, ['late']))).to.equal(bodyText(reply));
    });
});

describe('the encoded content of a reply', () => {
  const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

  for (const [form, data] of Object.entries({
    'an object': { a: 1 },
    'a rendered text': new Rendered('{"a":1}'),
    pieces: new Rendered([Buffer.from('{"a"'), Buffer.from(':1}')]),
    'pieces of text and of bytes': new Rendered(['{"a"', Buffer.from(':1'), '}']),
  }))
    it(`has the members that clients expect, in order, with a newline, with data from ${form}`, () => {
      const text = textOf(dataReply(data));
      const { request_id } = JSON.parse(text);
      expect(request_id).to.match(uuid);
      expect(text.replace(request_id, 'ID')).to.equal(
        '{"request_id":"ID","lease_id":"","renewable":false,"lease_duration":0,"data":{"a":1},"wrap_info":null,"warnings":null,"auth":null}\n',
      );
    });

  it('has a new request id each time', () => {
    const ids = Array.from({ length: 1000 }, () => JSON.parse(textOf(dataReply(null))).request_id);
    expect(new Set(ids).size).to.equal(1000);
  });

  for (const [name, reply] of Object.entries({
    'an envelope': topLevelDataReply({ b: 1 }),
    'an unwrapped response': unwrapped(topLevelDataReply({ b: 1 })),
    'an unwrapped response that was wrapped twice': unwrapped(wrappingReply),
  }))
    it(`has the id of the audit entries in ${name}`, () => {
      expect(JSON.parse(textOf({ ...reply, requestId: id })).request_id).to.equal(id);
    });

  it('is the earlier response if it was unwrapped, without an envelope too', () => {
    const reply = dataReply({ a: 1 }, ['w']);
    const text = textOf(reply);
    expect(textOf({ status: 200, unwrapped: text })).to.equal(text);
    expect(textOf({ status: 200, unwrapped: '{}\n', requestId: id })).to.equal('{}\n');
  });

  it('has warnings as an array, whatever they contain', () => {
    expect(warningsOf(dataReply({}, ['a "b"\n', 'c']))).to.deep.equal(['a "b"\n', 'c']);
  });

  for (const data of [{}, { a: 1 }])
    it(`has ${JSON.stringify(data)} at the top level and in data`, () => {
      const { data: inside, ...top } = JSON.parse(textOf(topLevelDataReply(data)));
      expect(inside).to.deep.equal(data);
      expect(top).to.deep.include(data);
    });

  it('ends with the members after long data, once its stream was read', async () => {
    const { body, stream } = encode(dataReply(new Rendered('[1', Readable.from([',2', ']'])), ['w']));
    const texts = [body];
    for await (const text of stream ?? []) texts.push(String(text));
    expect(JSON.parse(texts.join(''))).to.deep.include({ data: [1, 2], warnings: ['w'] });
  });

  it('has a list of errors, empty for a missing resource, and warnings if there are any', () => {
    expect(textOf({ status: 404, errors: [] })).to.equal('{"errors":[]}\n');
    expect(textOf({ status: 400, errors: ['a "b"'], warnings: ['w'] })).to.equal('{"errors":["a \\"b\\""],"warnings":["w"]}\n');
  });

  it('is one line of JSON without an envelope, or the content that a reply has in its final form', () => {
    expect(textOf({ status: 200, json: { a: undefined, b: 1 } })).to.equal('{"b":1}\n');
    expect(textOf({ status: 200, body: 'svc_up 1' })).to.equal('svc_up 1');
    expect(bodyText(noContentReply)).to.equal(undefined);
  });
});
