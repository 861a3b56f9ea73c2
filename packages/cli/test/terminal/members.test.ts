import { StartError } from '@transitd/process';
import { expect } from 'chai';
import fc from 'fast-check';
import { codePoint } from '../../../../test/code-points.ts';
import type { Sources } from '../../src/terminal/input.ts';
import { membersOf, pairsOf } from '../../src/terminal/members.ts';

const sources: Sources = {
  stdin: async () => Buffer.from('{"from":"stdin"}\n'),
  file: (path) => {
    if (path !== 'f') throw new StartError(`${path} cannot be read: ENOENT`);
    return Buffer.from('{"from":"file","n":1}');
  },
};

describe('data arguments', () => {
  for (const { args, body } of [
    { args: [], body: {} },
    { args: ['a=b', 'c='], body: { a: 'b', c: '' } },
    { args: ['a=b=c'], body: { a: 'b=c' } },
    { args: ['a=1', 'a=2', 'a=3'], body: { a: ['1', '2', '3'] } },
    { args: ['a=@f'], body: { a: '{"from":"file","n":1}' } },
    { args: ['a=-'], body: { a: '{"from":"stdin"}\n' } },
    { args: ['a=\\@f'], body: { a: '@f' } },
    { args: ['-'], body: { from: 'stdin' } },
    { args: ['@f'], body: { from: 'file', n: 1 } },
    { args: ['@f', 'x=y'], body: { from: 'file', n: 1, x: 'y' } },
    { args: ['__proto__=x'], body: Object.fromEntries([['__proto__', 'x']]) },
  ])
    it(`${JSON.stringify(args)} is ${JSON.stringify(body)}`, async () => {
      expect(JSON.stringify(await membersOf(args, sources))).to.equal(JSON.stringify(body));
    });

  for (const { args, says } of [
    { args: ['ok=1', 'hunter2'], says: 'data argument 2 is not of the form name=value' },
    { args: ['=hunter2'], says: 'data argument 1 is not of the form name=value' },
    { args: ['a=@nowhere'], says: 'nowhere cannot be read: ENOENT' },
    ...['password', 'secret_id', 'jwt', 'token_reviewer_jwt', 'token', 'otp', 'pin', 'key', 'backup'].flatMap((name) =>
      ['hunter2', '\\@hunter2', ''].map((value) => ({
        args: ['ok=1', `${name}=${value}`],
        says: `${name} must not be on the command line, where other users and the shell history can expose it: use ${name}=- to read it from standard input, or ${name}=@FILE to read it from a file`,
      })),
    ),
  ])
    it(`refuses ${JSON.stringify(args)} without repeating the value`, async () => {
      const error = await membersOf(args, sources).catch((reason: unknown) => reason);
      expect(error).to.be.instanceOf(StartError).with.property('message', says);
    });

  for (const text of ['', 'hunter2', '[1]', 'null', '"hunter2"'])
    it(`refuses ${JSON.stringify(text)} as a JSON object without repeating it`, async () => {
      const error = await membersOf(['-'], { ...sources, stdin: async () => Buffer.from(text) }).catch(
        (reason: unknown) => reason,
      );
      expect(error).to.be.instanceOf(StartError);
      expect(String(error))
        .to.match(/the data is not/)
        .and.not.include('hunter2');
    });

  for (const [text, position] of [
    ['', '1:1'],
    ['hunter2', '1:1'],
    ['{"a": 1,\n "b": hunter2}', '2:7'],
    ['{"a": "hunter2",}', '1:17'],
    ['{"a": tru}', '1:10'],
    ['{"a": 1', '1:8'],
    ['{"a": "hunter2', '1:15'],
    ['{}\n\n{}', '3:1'],
    ['{"a": 01}', '1:8'],
    ["{'a': 1}", '1:2'],
  ] as const)
    it(`names the file and the position ${position} of the mistake in ${JSON.stringify(text)}`, async () => {
      const error = await membersOf(['@bad.json'], { ...sources, file: () => Buffer.from(text) }).catch(
        (reason: unknown) => reason,
      );
      expect(error).to.be.instanceOf(StartError).with.property('message', `bad.json:${position}: the data is not JSON`);
    });

  it('finds a mistake at any position of any JSON', async () => {
    await fc.assert(
      fc.asyncProperty(fc.json({ stringUnit: codePoint }), fc.nat(), async (json, at) => {
        const index = at % (json.length + 1);
        const text = `${json.slice(0, index)}\u0001${json.slice(index)}`;
        const error = await membersOf(['-'], { ...sources, stdin: async () => Buffer.from(text) }).catch(
          (reason: unknown) => reason,
        );
        const column = Buffer.from(text).toString('utf8').indexOf('\u0001') + 1;
        expect(error).to.have.property('message', `standard input:1:${column}: the data is not JSON`);
      }),
    );
  });

  it('parses the pairs of an option', () => {
    expect(pairsOf('--metadata', ['a=1', 'b=x=y'])).to.deep.equal({ a: '1', b: 'x=y' });
    expect(() => pairsOf('--metadata', ['hunter2'])).to.throw(StartError, /^--metadata takes pairs of the form name=value$/);
  });
});
