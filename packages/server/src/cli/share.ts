import { hiddenLine, type Sources, textFrom } from './input.ts';

/** A share that was given, or is asked for where nobody sees it. */
export async function shareFrom(sources: Sources, given: string | undefined): Promise<string> {
  const share = await (given === undefined
    ? hiddenLine('Share of the key (will be hidden): ', 'give - to read the share from standard input')
    : textFrom(given, sources));
  return share.trim();
}
