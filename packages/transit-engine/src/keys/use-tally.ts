import type { KeyRecord } from './key-record.ts';

/** What is counted of a key version. MACs count as signatures, and their checks as verifications; a data key is an encryption. */
export const useKinds = ['encryptions', 'decryptions', 'signatures', 'verifications'] as const;
export type UseKind = (typeof useKinds)[number];
export type UseCounts = Record<UseKind, number>;

export const noUses = (): UseCounts => ({ encryptions: 0, decryptions: 0, signatures: 0, verifications: 0 });

/** The uses of one key by one request. The caller adds them to its counts if it answers with the result of the request. */
export class UseTally {
  /** Empty until a key is used. */
  keyId = '';
  /** By version. */
  readonly counts = new Map<number, UseCounts>();

  /** Begins again: an operation starts over if a version disappears meanwhile. */
  begin({ record }: { readonly record: Pick<KeyRecord, 'id'> }): void {
    this.keyId = record.id;
    if (this.counts.size > 0) this.counts.clear();
  }

  add(kind: UseKind, version: number): void {
    let counts = this.counts.get(version);
    if (counts === undefined) {
      counts = noUses();
      this.counts.set(version, counts);
    }
    counts[kind] += 1;
  }
}
