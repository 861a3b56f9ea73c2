import { promptHidden, type Sources, secretFrom } from './input.ts';

/** Reads a share from standard input or a file, or prompts for it without echo. @throws StartError */
export async function shareFrom(sources: Sources, argument: string | undefined): Promise<string> {
  const share = await (argument === undefined
    ? promptHidden('Key share (will be hidden): ', 'use - to read the share from standard input')
    : secretFrom(argument, 'a share', sources));
  return share.trim();
}
