// Published vectors. Binary values are in hexadecimal.
import { readFileSync } from 'node:fs';

/** A file of Wycheproof. */
export interface Wycheproof<Group, Case> {
  readonly numberOfTests: number;
  readonly testGroups: readonly (Group & { readonly tests: readonly (Case & WycheproofCase)[] })[];
}

export interface WycheproofCase {
  readonly tcId: number;
  readonly comment: string;
  readonly result: 'valid' | 'invalid' | 'acceptable';
}

export function vectorFile<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`vectors/${name}`, import.meta.url), 'utf8'));
}

export const hex = (text: string): Buffer => Buffer.from(text, 'hex');
