import { createReadStream } from 'node:fs';
import { exitCode, StartError } from '@transitd/process';
import { type Checked, checkLine } from './chain.ts';

const newline = 0x0a;

/**
 * Checks the chain of the entries in the files of one sink, and says how many there are and where it is broken.
 * @param files - in the order in which they were written
 * @param say - takes one line of text at a time
 * @returns the exit code: 0 when the chain is whole, 2 when it is broken
 * @throws StartError for a file that cannot be read
 */
export async function verifyAudit(files: readonly string[], say: (text: string) => void): Promise<number> {
  let checked: Checked = {};
  let entries = 0;
  let breaks = 0;
  const broken = (where: string, why: string): void => {
    breaks += 1;
    say(`broken at ${where}: ${why}`);
  };
  for (const file of files) {
    let number = 0;
    for await (const { line, isWhole } of linesOf(file)) {
      number += 1;
      const where = `${file}:${number}`;
      if (!isWhole) broken(where, 'it lacks its end');
      const step = checkLine(checked, line, { beginsFile: number === 1 });
      checked = step.after;
      if (checked.torn === true) say(`${where}: no entry; what a full disk or a crash has left, if the next entry names it`);
      else entries += 1;
      if (step.beginsAnew === true) say(`${where}: the chain begins here, what was before cannot be seen`);
      if (step.broken !== undefined) broken(where, step.broken);
    }
  }
  if (checked.torn === true) broken('the end', 'the last line is no entry');
  const { last, hash } = checked;
  const end = last === undefined ? '' : `; the last one is number ${last.seq} of run ${last.run}, hash ${hash}`;
  say(`${entries} entries, ${breaks === 0 ? 'whole' : `broken in ${breaks} places`}${end}`);
  return breaks === 0 ? exitCode.ok : exitCode.denied;
}

/** Lines as bytes, since a hash is of bytes. @throws StartError */
async function* linesOf(file: string): AsyncGenerator<{ readonly line: Buffer; readonly isWhole: boolean }> {
  let pieces: Buffer[] = [];
  try {
    for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
      let from = 0;
      for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
        yield { line: Buffer.concat([...pieces, chunk.subarray(from, at)]), isWhole: true };
        pieces = [];
        from = at + 1;
      }
      if (from < chunk.length) pieces.push(chunk.subarray(from));
    }
  } catch (error) {
    throw new StartError(`${file} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`);
  }
  if (pieces.length > 0) yield { line: Buffer.concat(pieces), isWhole: false };
}
