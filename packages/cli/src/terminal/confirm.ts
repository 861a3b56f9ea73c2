import { createInterface } from 'node:readline/promises';
import { escapeControls, StartError } from '@transitd/process';

/**
 * Asks on the terminal; only the full word `yes` agrees.
 * @param alternative - how to agree without a terminal
 * @throws StartError without a terminal
 */
export async function confirm(question: string, alternative: string): Promise<boolean> {
  if (process.stdin.isTTY !== true) throw new StartError(`no terminal to ask on: ${alternative}`);
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return (await lines.question(`${escapeControls(question)} Type yes to agree: `)).trim() === 'yes';
  } finally {
    lines.close();
  }
}

/**
 * Asks on a terminal before a change that cannot be undone. Without a terminal it does not ask, so that scripts need no option.
 * @throws StartError unless the user agrees
 */
export async function confirmLoss(question: string, { yes }: { readonly yes?: true }): Promise<void> {
  if (yes === true || process.stdin.isTTY !== true) return;
  if (!(await confirm(question, 'use --yes'))) throw new StartError('nothing was changed');
}
