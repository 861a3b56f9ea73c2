import { createReadStream } from 'node:fs';
import { exitCode, StartError } from '@transitd/process';
import { type ChainCheck, checkLine } from './chain.ts';

const newline = 0x0a;

/**
 * Checks the hash chain in the files of one device; prints the number of entries and where the chain is broken.
 * @param files - in the order in which they were written
 * @param print - receives one line of text at a time
 * @returns the exit code: 0 when the chain is intact, 2 when it is broken
 * @throws StartError for a file that cannot be read
 */
export async function verifyAudit(files: readonly string[], print: (text: string) => void): Promise<number> {
  let checked: ChainCheck = {};
  let entries = 0;
  let breaks = 0;
  const broken = (where: string, why: string): void => {
    breaks += 1;
    print(`broken at ${where}: ${why}`);
  };
  for (const file of files) {
    let number = 0;
    for await (const { line, isComplete } of linesOf(file)) {
      number += 1;
      const where = `${file}:${number}`;
      if (!isComplete) broken(where, 'the line has no newline at its end');
      const step = checkLine(checked, line, { isFirstInFile: number === 1 });
      checked = step.after;
      if (checked.torn === true)
        print(
          `${where}: not an entry; a full disk or a crash left an incomplete line, unless the next line is reported as broken`,
        );
      else entries += 1;
      if (step.startsChain === true) print(`${where}: the chain starts here; earlier entries are not in these files`);
      if (step.broken !== undefined) broken(where, step.broken);
    }
  }
  if (checked.torn === true) broken('the end', 'the last line is not an entry');
  const { last, hash } = checked;
  const end = last === undefined ? '' : `; the last entry is number ${last.seq} of run ${last.run}, hash ${hash}`;
  print(`${entries} entries, chain ${breaks === 0 ? 'intact' : `broken in ${breaks} places`}${end}`);
  return breaks === 0 ? exitCode.ok : exitCode.denied;
}

/** Yields the lines of a file as bytes, since hashes are over bytes. @throws StartError */
async function* linesOf(file: string): AsyncGenerator<{ readonly line: Buffer; readonly isComplete: boolean }> {
  let pieces: Buffer[] = [];
  try {
    for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
      let from = 0;
      for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
        yield { line: Buffer.concat([...pieces, chunk.subarray(from, at)]), isComplete: true };
        pieces = [];
        from = at + 1;
      }
      if (from < chunk.length) pieces.push(chunk.subarray(from));
    }
  } catch (error) {
    throw new StartError(`${file} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`);
  }
  if (pieces.length > 0) yield { line: Buffer.concat(pieces), isComplete: false };
}
