import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StartError } from '@transitd/process';
import { expect } from 'chai';
import { countVersions, type RewrapItem, type RewrapTask, rewrapLines } from '../../src/files/rewrap-lines.ts';

describe('the rewrapping of JSON lines', () => {
  let folder: string;
  let batches: (readonly RewrapItem[])[];
  let failures: (readonly [number, string])[];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-lines-'));
    [batches, failures] = [[], []];
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const at = (name: string): string => join(folder, name);
  const run = (more: Partial<RewrapTask> = {}) =>
    rewrapLines({
      input: at('in'),
      output: at('out'),
      resume: false,
      rewrap: async (items) => {
        batches.push(items);
        return items.map(({ ciphertext }) =>
          ciphertext === 'bad' ? { error: 'wrong' } : { ciphertext: ciphertext.replace('v1', 'v2') },
        );
      },
      progress: () => undefined,
      failed: (line, reason) => failures.push([line, reason]),
      ...more,
    });
  const failure = async (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => undefined,
      (error: unknown) => error,
    );
  /** Leaves what a killed run leaves. */
  const interrupt = async (part: string): Promise<void> => {
    rmSync(at('out'), { force: true });
    let note = '';
    const rewrap = (): Promise<never> => {
      note = readFileSync(at('out.part.source'), 'utf8');
      return Promise.reject(new Error('no answer'));
    };
    await failure(run({ rewrap }));
    expect(existsSync(at('out.part')) || existsSync(at('out.part.source')), 'no empty output is kept').to.equal(false);
    writeFileSync(at('out.part.source'), note);
    writeFileSync(at('out.part'), part, { mode: 0o600 });
  };
  const lines = (count: number): string[] =>
    Array.from({ length: count }, (_, id) => JSON.stringify({ id, ciphertext: `svc:v1:${id}`, note: 'ü' }));

  it('replaces the ciphertexts, in batches, and keeps the order and the other members', async () => {
    writeFileSync(at('in'), `${lines(1203).join('\n')}\n`);
    const seen: number[] = [];
    expect(await run({ progress: (done) => seen.push(done) })).to.deep.equal({ lines: 1203, rewrapped: 1203, failed: 0 });
    expect(readFileSync(at('out'), 'utf8')).to.equal(`${lines(1203).join('\n').replaceAll('svc:v1', 'svc:v2')}\n`);
    expect(batches.map((batch) => batch.length)).to.deep.equal([500, 500, 203]);
    expect(seen.at(-1)).to.equal(Buffer.byteLength(readFileSync(at('in'))));
  });

  it('sends the ciphertext, the context and the associated data, and nothing else', async () => {
    const bound = '{"ciphertext":"b","associated_data":"eQ==","context":"eA=="}';
    writeFileSync(at('in'), `{"ciphertext":"svc:v1:a","context":"eA==","row":7}\r\n{"ciphertext":"b"}\n${bound}`);
    await run();
    expect(batches).to.deep.equal([
      [
        { ciphertext: 'svc:v1:a', context: 'eA==' },
        { ciphertext: 'b' },
        { ciphertext: 'b', associated_data: 'eQ==', context: 'eA==' },
      ],
    ]);
  });

  it('keeps a line that cannot be rewrapped, and reports it', async () => {
    writeFileSync(at('in'), '{"ciphertext":"svc:v1:a"}\n{"ciphertext":"bad", "row": 2}\n');
    expect(await run()).to.deep.equal({ lines: 2, rewrapped: 1, failed: 1 });
    expect(failures).to.deep.equal([[2, 'wrong']]);
    expect(readFileSync(at('out'), 'utf8')).to.equal('{"ciphertext":"svc:v2:a"}\n{"ciphertext":"bad", "row": 2}\n');
  });

  it('continues after the last complete line', async () => {
    const all = lines(20);
    writeFileSync(at('in'), `${all.join('\n')}\n`);
    const done = all.slice(0, 7).join('\n').replaceAll('svc:v1', 'svc:v2');
    for (const cut of ['', '\n', '\n{"id":7,"ciph']) {
      await interrupt(`${done}${cut}`);
      batches = [];
      await run({ resume: true });
      expect(readFileSync(at('out'), 'utf8')).to.equal(`${all.join('\n').replaceAll('svc:v1', 'svc:v2')}\n`);
      expect(batches.flat().map(({ ciphertext }) => ciphertext)[0]).to.equal(cut === '' ? 'svc:v1:6' : 'svc:v1:7');
    }
  });

  it('continues only with the unchanged input', async () => {
    const all = lines(20);
    writeFileSync(at('in'), `${all.join('\n')}\n`);
    await interrupt(`${all[0]}\n`);
    writeFileSync(at('in'), `${all.toReversed().join('\n')}\n`);
    expect(await failure(run({ resume: true }))).to.match(/has changed: delete .*out\.part/);
    expect(readFileSync(at('out.part'), 'utf8')).to.equal(`${all[0]}\n`);
    rmSync(at('out.part.source'));
    expect(await failure(run({ resume: true }))).to.match(/is not the file from which/);
  });

  it('refuses an input that changes while it is read', async () => {
    writeFileSync(at('in'), `${lines(600).join('\n')}\n`);
    const rewrap: RewrapTask['rewrap'] = async (items) => {
      appendFileSync(at('in'), '\n');
      return items;
    };
    expect(await failure(run({ rewrap }))).to.match(/is not a JSON object|changed while it was read/);
    expect(existsSync(at('out'))).to.equal(false);
  });

  it('does not count damaged lines of an interrupted output as done', async () => {
    const all = lines(20);
    writeFileSync(at('in'), `${all.join('\n')}\n`);
    await interrupt(`${all[0]}\n${'\0'.repeat(300)}\n${all[2]}\n`);
    await run({ resume: true });
    expect(batches.flat()).to.have.length(19);
    expect(readFileSync(at('out'), 'utf8').split('\n')).to.have.length(21);
  });

  it('leaves everything but the ciphertext as it is: large integers, spaces, line ends, separators of Unicode', async () => {
    const odd = [
      '{"id":12345678901234567890, "ciphertext" : "svc:v1:\\u0061" ,"x":1.0}',
      '{"a":{"ciphertext":"inner"},"b":["ciphertext","}"],"\\u0063iphertext":"svc:v1:b"}\r',
      '{"text":"one\u2028two\u0085three\\\\","ciphertext":"svc:v1:c","same":1,"same":2}',
    ];
    writeFileSync(at('in'), odd.join('\n'));
    await run();
    expect(batches.flat().map(({ ciphertext }) => ciphertext)).to.deep.equal(['svc:v1:a', 'svc:v1:b', 'svc:v1:c']);
    expect(readFileSync(at('out'), 'utf8')).to.equal(
      `${odd.join('\n').replace('\\u0061', 'a').replaceAll('svc:v1', 'svc:v2')}\n`,
    );
  });

  it('refuses lines that are not UTF-8, and lines without end, with bounded memory', async () => {
    writeFileSync(at('in'), Buffer.from('{"ciphertext":"svc:v1:a","note":"\xfc"}\n', 'latin1'));
    expect(await failure(run()))
      .to.be.instanceOf(StartError)
      .and.match(/line 1 of .*in is not UTF-8/);
    rmSync(at('out.part'), { force: true });
    writeFileSync(at('in'), '');
    truncateSync(at('in'), 1024 * 1024 * 1024);
    expect(await failure(run()))
      .to.be.instanceOf(StartError)
      .and.match(/line 1 of .*in is longer/);
  });

  it('keeps the part when the service fails, and refuses a line that is not valid without quoting it', async () => {
    writeFileSync(at('in'), `${lines(600).join('\n')}\n`);
    let calls = 0;
    const rewrap: RewrapTask['rewrap'] = async (items) => {
      calls += 1;
      if (calls === 2) throw new Error('no answer');
      return items.map(({ ciphertext }) => ({ ciphertext }));
    };
    expect(await failure(run({ rewrap }))).to.match(/no answer/);
    expect(existsSync(at('out'))).to.equal(false);
    expect(readFileSync(at('out.part'), 'utf8').split('\n')).to.have.length(501);
    await run({ resume: true });
    expect(batches.flat()).to.have.length(100);
    for (const text of ['secret', '["secret"]', '{"text":"secret"}', 'null', '{"ciphertext":"secret","ciphertext":"secret"}']) {
      for (const name of ['out', 'out.part']) rmSync(at(name), { force: true });
      writeFileSync(at('in'), `${text}\n`);
      expect(await failure(run()))
        .to.be.instanceOf(StartError)
        .with.property('message')
        .that.equals(`line 1 of ${at('in')} is not a JSON object with one ciphertext`);
    }
  });
});

describe('the count of ciphertexts by key version', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-versions-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));
  const counted = async (content: string) => {
    writeFileSync(join(folder, 'rows'), content);
    return countVersions(join(folder, 'rows'));
  };

  it('parses the lines, so that spaces, the order of members and the prefix have no effect', async () => {
    const rows = [
      '{"id":1,"ciphertext":"svc:v2:AA"}',
      '{ "ciphertext" : "our2:v10:AA", "note": "svc:v1:" }',
      '{"ciphertext":"\\u0073vc:v2:AA","context":"AA=="}',
      '{"note":"\\"ciphertext\\":\\"svc:v1:\\"","ciphertext": "svc:v3:AA"}',
    ];
    expect(await counted(rows.join('\n'))).to.deep.equal([
      [2, 2],
      [3, 1],
      [10, 1],
    ]);
  });

  for (const [what, content, says] of [
    [
      'a line without a ciphertext',
      '{"ciphertext":"svc:v2:AA"}\n{"id":1}\n',
      /^line 2 of .*rows is not a JSON object with one cip/,
    ],
    ['a line with two ciphertexts', '{"ciphertext":"svc:v2:AA","ciphertext":"svc:v1:AA"}', /^line 1 of/],
    ['a ciphertext without a version', '{"ciphertext":"svc:AA"}', /^line 1 of/],
    ['an empty line', '{"ciphertext":"svc:v2:AA"}\n\n', /^line 2 of/],
    ['an empty file', '', /rows has no lines$/],
  ] as const)
    it(`refuses ${what}, because an old ciphertext could be missed`, async () => {
      const error = await counted(content).catch((reason: unknown) => reason);
      expect(error).to.be.instanceOf(StartError).with.property('message').that.matches(says);
    });
});
