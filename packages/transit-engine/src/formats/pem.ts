import { TransitError } from '../values/errors.ts';
import { decodeBase64 } from './base64.ts';

/** A block of a PEM text (RFC 7468). */
export interface PemBlock {
  readonly label: string;
  readonly der: Buffer;
}

const lineLength = 64;

/** Encodes PEM with a final newline (RFC 7468 §2). */
export function pemOf({ label, der }: { readonly label: string; readonly der: Uint8Array }): string {
  const lines =
    Buffer.from(der.buffer, der.byteOffset, der.length)
      .toString('base64')
      .match(new RegExp(`.{1,${lineLength}}`, 'g')) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}

const begin = '-----BEGIN ';
const block = /-----BEGIN ([A-Z0-9 ]{1,64})-----\s([^-]*)-----END \1-----/y;

/**
 * Parses the blocks of a text in order, in linear time. Text before a block is skipped, because tools put explanations there; after the
 * last block only white space may follow.
 * @returns undefined for anything else
 */
export function readPem(text: string): readonly PemBlock[] | undefined {
  const blocks: PemBlock[] = [];
  const { length } = text.trimEnd();
  for (let at = 0; at < length; at = block.lastIndex) {
    const beginAt = text.indexOf(begin, at);
    if (beginAt === -1) return undefined;
    block.lastIndex = beginAt;
    const found = block.exec(text);
    const der = found && base64Lines(found[2] ?? '');
    if (found === null || !der) return undefined;
    blocks.push({ label: found[1] ?? '', der });
  }
  return blocks;
}

function base64Lines(lines: string): Buffer | undefined {
  try {
    return decodeBase64(lines.replace(/\s+/g, ''));
  } catch (error) {
    if (error instanceof TransitError) return undefined;
    throw error;
  }
}
