import { hiddenLine, type Sources, secretFrom } from './input.ts';

/** A share from standard input or a file, or asked for where nobody sees it. @throws StartError */
export async function shareFrom(sources: Sources, given: string | undefined): Promise<string> {
  const share = await (given === undefined
    ? hiddenLine('Share of the key (will be hidden): ', 'give - to read the share from standard input')
    : secretFrom(given, 'a share', sources));
  return share.trim();
}
