import { createHash, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import { combine, split } from 'shamir-secret-sharing';
import { keyBytes } from '../records/box.ts';
import { BarrierError } from '../records/errors.ts';
import type { ShareCounts } from './seal-config.ts';

/** A random 32-byte key and its shares. A single share is the key itself. The caller wipes the key. */
export interface SharedKey {
  readonly key: Buffer;
  readonly shares: readonly Buffer[];
}

/** Returns a new key, split by Shamir's scheme over GF(2^8); the last byte of a share is its x coordinate. */
export async function newSharedKey({ shares: count, threshold }: ShareCounts): Promise<SharedKey> {
  const key = randomBytes(keyBytes);
  if (count === 1) return { key, shares: [Buffer.from(key)] };
  const secret = new Uint8Array(key); // the library does not accept a Buffer
  const shares = await split(secret, count, threshold);
  secret.fill(0);
  return { key, shares: shares.map(asBuffer) };
}

/** Returns the SHA-256 of a share. A share is as hard to guess as the key, so its hash may be stored in plaintext. */
export const hashShare = (share: Uint8Array): Buffer => createHash('sha256').update(share).digest();

/**
 * Parses a share as typed by an operator.
 * @throws BarrierError `share_missing`, `share_encoding`
 */
export function parseShare(text: string): Buffer {
  if (text === '')
    throw new BarrierError('share_missing', "'key' must be specified in request body as JSON, or 'reset' set to true");
  if (/^(?:[0-9a-f]{2})+$/i.test(text)) return Buffer.from(text, 'hex');
  if (/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)) return Buffer.from(text, 'base64');
  throw new BarrierError('share_encoding', "'key' must be a valid hex or base64 string");
}

/** Collects shares of one key until there are enough. */
export class ShareCollection {
  /** Identifies this collection. */
  readonly nonce = randomUUID();
  readonly threshold: number;
  readonly #hashes: readonly Buffer[];
  readonly #shares = new Map<number, Uint8Array>();

  /** @param hashes - SHA-256 of every valid share */
  constructor(threshold: number, hashes: readonly Buffer[]) {
    this.threshold = threshold;
    this.#hashes = hashes;
  }

  /** Adds a share; the same share counts once. @throws BarrierError `invalid_share`; nothing has changed then */
  add(share: Uint8Array): void {
    const position = this.#positionOf(hashShare(share));
    if (position === -1) throw new BarrierError('invalid_share', 'invalid key: it is not one of the shares of this key');
    if (!this.#shares.has(position)) this.#shares.set(position, new Uint8Array(share));
  }

  get progress(): number {
    return this.#shares.size;
  }

  /** The different shares added so far. They are not copies, so `wipe` wipes them. */
  get given(): readonly Uint8Array[] {
    return [...this.#shares.values()];
  }

  get complete(): boolean {
    return this.#shares.size >= this.threshold;
  }

  /** Combines the shares to the key; the caller wipes it. */
  async combine(): Promise<Buffer> {
    const shares = this.given;
    const [only] = shares;
    return shares.length === 1 && only !== undefined ? Buffer.from(only) : asBuffer(await combine([...shares]));
  }

  wipe(): void {
    for (const share of this.#shares.values()) share.fill(0);
    this.#shares.clear();
  }

  /** Always compares with every hash in constant time, so that timing reveals nothing about a hash or its position. */
  #positionOf(hash: Buffer): number {
    let position = -1;
    this.#hashes.forEach((known, index) => {
      if (timingSafeEqual(known, hash)) position = index;
    });
    return position;
  }
}

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
