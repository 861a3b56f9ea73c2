import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { chained, continued, type Link, lineHash, newRun } from '../src/chain.ts';
import { verifyAudit } from '../src/verify.ts';

/** So many lines of one run. */
function linesOf(count: number, from: Link = newRun(null)): { readonly lines: string[]; readonly end: Link } {
  let end = from;
  const lines = Array.from({ length: count }, (_, number) => {
    const { line, next } = chained(`{"entry":${number}}`, end);
    end = next;
    return line;
  });
  return { lines, end };
}

const text = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');

describe('the chain of audit entries', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-audit-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** Verifies files with these texts. */
  async function verify(...texts: readonly string[]): Promise<{ readonly code: number; readonly said: string }> {
    const files = texts.map((content, number) => {
      const file = join(folder, String(number));
      writeFileSync(file, content);
      return file;
    });
    const said: string[] = [];
    const code = await verifyAudit(files, (line) => said.push(line.replaceAll(`${folder}/`, '')));
    return { code, said: said.join('\n') };
  }

  it('is whole from the first entry to the last, which is named', async () => {
    const { lines, end } = linesOf(3);
    const { code, said } = await verify(text(lines));
    expect([code, said]).to.deep.equal([0, `3 entries, whole; the last one is number 3 of run ${end.run}, hash ${end.prev}`]);
  });

  it('is broken by any change of a line, but for the last one, and says where', async () => {
    const { lines } = linesOf(6);
    await fc.assert(
      fc.asyncProperty(fc.nat(4), fc.nat(1000), fc.integer({ min: 0x20, max: 0x7e }), async (number, place, code) => {
        const line = lines[number] ?? '';
        const at = place % line.length;
        const changed = line.slice(0, at) + String.fromCharCode(code) + line.slice(at + 1);
        fc.pre(changed !== line);
        const result = await verify(text(lines.with(number, changed)));
        expect(result.code).to.equal(2);
        expect(result.said).to.match(new RegExp(`broken at 0:(${number + 1}|${number + 2}):`));
      }),
      { numRuns: 60 },
    );
  });

  for (const { what, change } of [
    { what: 'a line that is missing', change: ([a, , c, d]: string[]) => [a, c, d] },
    { what: 'a line that comes twice', change: ([a, b, c, d]: string[]) => [a, b, b, c, d] },
    { what: 'two lines that changed places', change: ([a, b, c, d]: string[]) => [a, c, b, d] },
    { what: 'a line that is no entry', change: ([a, b, c, d]: string[]) => [a, 'x', b, c, d] },
    { what: 'an entry without a place', change: ([a, b, c, d]: string[]) => [a, b, '{"entry":2}', c, d] },
    { what: 'another run that does not name what was before', change: ([a, b]: string[]) => [a, b, ...linesOf(2).lines] },
  ]) {
    it(`is broken by ${what}`, async () => {
      const { lines } = linesOf(4);
      const { code, said } = await verify(text(change(lines).map((line) => line ?? '')));
      expect(code, said).to.equal(2);
    });
  }

  it('is broken by a last line without its end', async () => {
    expect((await verify(text(linesOf(2).lines).slice(0, -1))).said).to.match(/^broken at 0:2: it lacks its end/);
  });

  it('goes on in a new file, and over the restart of a process in the same file', async () => {
    const first = linesOf(2);
    const second = linesOf(2, continued(first.end, undefined));
    const restarted = linesOf(2, continued(undefined, second.end.prev ?? ''));
    const texts = [text(first.lines), text([...second.lines, ...restarted.lines])] as const;
    expect((await verify(...texts)).code).to.equal(0);
    expect((await verify(texts[1])).said, 'alone').to.match(/^0:1: the chain begins here/);
    const [, , ...rest] = [...second.lines, ...restarted.lines];
    expect((await verify(texts[0], text(rest))).code, 'with a gap between the files').to.equal(2);
  });

  it('goes on behind a torn line when the next entry begins a run that names it', async () => {
    const { lines, end } = linesOf(2);
    const torn = '{"chain":{"run":"';
    const behind = linesOf(2, continued(end, lineHash(torn)));
    expect((await verify(text([...lines, torn, ...behind.lines]))).code).to.equal(0);
    expect((await verify(text([...lines, torn, ...linesOf(2, end).lines]))).code, 'unnamed').to.equal(2);
  });
});
