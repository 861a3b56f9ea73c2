import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runAtOnce } from '@transitd/event-loop';
import { expect } from 'chai';
import fc from 'fast-check';
import { continueChain, type Link, lineHash, linkEntry, newRun } from '../src/chain.ts';
import { verifyAudit } from '../src/verify.ts';

/** Returns this many lines of one run. */
function linesOf(count: number, from: Link = newRun(null)): { readonly lines: string[]; readonly end: Link } {
  let end = from;
  const lines = Array.from({ length: count }, (_, number) => {
    const { line, next } = runAtOnce(linkEntry(`{"entry":${number}}`, end));
    end = next;
    return line.toString();
  });
  return { lines, end };
}

const text = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');

describe('the hash chain of audit entries', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-audit-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** Verifies files with these contents. */
  async function verify(...texts: readonly string[]): Promise<{ readonly code: number; readonly printed: string }> {
    const files = texts.map((content, number) => {
      const file = join(folder, String(number));
      writeFileSync(file, content);
      return file;
    });
    const printed: string[] = [];
    const code = await verifyAudit(files, (line) => printed.push(line.replaceAll(`${folder}/`, '')));
    return { code, printed: printed.join('\n') };
  }

  it('hashes a long entry in steps', () => {
    expect([...linkEntry(JSON.stringify({ long: 'x'.repeat(5 * 1024 * 1024) }), newRun(null))]).to.have.length(5);
  });

  it('is intact from the first entry to the last, whose number and hash are printed', async () => {
    const { lines, end } = linesOf(3);
    const { code, printed } = await verify(text(lines));
    expect([code, printed]).to.deep.equal([
      0,
      `3 entries, chain intact; the last entry is number 3 of run ${end.run}, hash ${end.prev}`,
    ]);
  });

  it('is broken by any change of a line except the last, and the report names the line', async () => {
    const { lines } = linesOf(6);
    await fc.assert(
      fc.asyncProperty(fc.nat(4), fc.nat(1000), fc.integer({ min: 0x20, max: 0x7e }), async (number, place, code) => {
        const line = lines[number] ?? '';
        const at = place % line.length;
        const changed = line.slice(0, at) + String.fromCharCode(code) + line.slice(at + 1);
        fc.pre(changed !== line);
        const result = await verify(text(lines.with(number, changed)));
        expect(result.code).to.equal(2);
        expect(result.printed).to.match(new RegExp(`broken at 0:(${number + 1}|${number + 2}):`));
      }),
      { numRuns: 60 },
    );
  });

  for (const { what, change } of [
    { what: 'a missing line', change: ([a, , c, d]: string[]) => [a, c, d] },
    { what: 'a repeated line', change: ([a, b, c, d]: string[]) => [a, b, b, c, d] },
    { what: 'two swapped lines', change: ([a, b, c, d]: string[]) => [a, c, b, d] },
    { what: 'a line that is not an entry', change: ([a, b, c, d]: string[]) => [a, 'x', b, c, d] },
    { what: 'an entry without a chain position', change: ([a, b, c, d]: string[]) => [a, b, '{"entry":2}', c, d] },
    { what: 'a new run without the hash of the previous line', change: ([a, b]: string[]) => [a, b, ...linesOf(2).lines] },
  ]) {
    it(`is broken by ${what}`, async () => {
      const { lines } = linesOf(4);
      const { code, printed } = await verify(text(change(lines).map((line) => line ?? '')));
      expect(code, printed).to.equal(2);
    });
  }

  it('is broken by a last line without a newline', async () => {
    expect((await verify(text(linesOf(2).lines).slice(0, -1))).printed).to.match(
      /^broken at 0:2: the line has no newline at its end/,
    );
  });

  it('continues in a new file, and in the same file after a restart', async () => {
    const first = linesOf(2);
    const second = linesOf(2, continueChain(first.end, undefined));
    const restarted = linesOf(2, continueChain(undefined, second.end.prev ?? ''));
    const texts = [text(first.lines), text([...second.lines, ...restarted.lines])] as const;
    expect((await verify(...texts)).code).to.equal(0);
    expect((await verify(texts[1])).printed, 'alone').to.match(/^0:1: the chain starts here/);
    const [, , ...rest] = [...second.lines, ...restarted.lines];
    expect((await verify(texts[0], text(rest))).code, 'with a gap between the files').to.equal(2);
  });

  it('continues after a torn line if the next entry starts a run and has the hash of the torn line', async () => {
    const { lines, end } = linesOf(2);
    const torn = '{"chain":{"run":"';
    const next = linesOf(2, continueChain(end, lineHash(torn)));
    expect((await verify(text([...lines, torn, ...next.lines]))).code).to.equal(0);
    expect((await verify(text([...lines, torn, ...linesOf(2, end).lines]))).code, 'without that hash').to.equal(2);
  });
});
