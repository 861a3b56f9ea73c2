import { duration } from '../parts/format.ts';
import { type Key, useOf } from './key.ts';

/** The effect of a change of a key, in words, before it is made. */
export interface Preview {
  /** Things that continue to work or begin to. */
  readonly works: readonly string[];
  /** Things that stop working. */
  readonly stops: readonly string[];
  /** Why the node would refuse the change; empty if it would not. */
  readonly refused: readonly string[];
  readonly isFinal: boolean;
  /** Whether the change deletes material. */
  readonly deletes: boolean;
}

const range = (first: number, last: number): string => (first === last ? `version ${first}` : `versions ${first} to ${last}`);

/** The effect of a rotation, and of the settings by which versions age. */
export function rotationPreview(key: Key): Preview {
  const { latest, minEncryption } = key;
  const next = latest + 1;
  const changed = { latest: next, minDecryption: key.nextMinDecryption, minEncryption: key.nextMinEncryption };
  return {
    works: [
      `Version ${next} is created, and new ciphertexts, signatures and MACs use it.`,
      'Everything made with earlier versions still decrypts and verifies, within the minimums.',
    ],
    stops: [
      ...(minEncryption === 0 && latest > 0
        ? [`Callers that request version ${latest} for encrypting or signing are refused: only the latest version may.`]
        : silencedBy(key, changed)),
      ...lostBy(key, changed),
    ],
    refused: [],
    isFinal: true,
    deletes: false,
  };
}

/** The effect of other minimum versions. */
export function minimumsPreview(key: Key, minDecryption: number, minEncryption: number): Preview {
  const changed = { latest: key.latest, minDecryption: Math.max(1, minDecryption), minEncryption };
  const all = key.versions.map(({ version }) => version);
  const regained = all.filter((version) => useOf(version, key) === 'nothing' && useOf(version, changed) !== 'nothing');
  return {
    works: regained.length === 0 ? [] : [`Ciphertexts, signatures and MACs of ${spanOf(regained)} work again.`],
    stops: [...lostBy(key, changed), ...silencedBy(key, changed)],
    refused: minimumFaults(key, changed),
    isFinal: false,
    deletes: false,
  };
}

type Aging = Pick<Key, 'keepEncryption' | 'keepDecryption' | 'trimAfterS'>;

/** The effect of other settings by which versions age: at once, and with each rotation. */
export function agingPreview(key: Key, { keepEncryption, keepDecryption, trimAfterS }: Aging): Preview {
  const oldestOf = (kept: number): number => (kept === 0 ? 0 : Math.max(1, key.latest - kept + 1));
  const minDecryption = Math.max(key.minDecryption, oldestOf(keepDecryption));
  const encryption = Math.max(key.minEncryption, oldestOf(keepEncryption));
  const isSet = encryption > 0 || trimAfterS > 0;
  const minEncryption = isSet ? Math.max(encryption > 0 ? encryption : key.latest, minDecryption) : 0;
  const changed = { latest: key.latest, minDecryption, minEncryption };
  const gone = key.versions.map(({ version }) => version).filter((version) => version < minDecryption);
  const after = duration(trimAfterS);
  return {
    works: [
      ...(keepDecryption > 0 ? [`Each new version leaves the newest ${keepDecryption} for decrypting and verifying.`] : []),
      ...(keepEncryption > 0 ? [`Each new version leaves the newest ${keepEncryption} for encrypting and signing.`] : []),
    ],
    stops: [
      ...lostBy(key, changed),
      ...silencedBy(key, changed),
      ...(trimAfterS > 0 ? [`Versions that no longer decrypt are deleted permanently after ${after}.`] : []),
      ...(trimAfterS > 0 && gone.length > 0 ? [`${capital(spanOf(gone))} would be next.`] : []),
    ],
    refused: [
      ...(keepDecryption > 0 && keepEncryption > keepDecryption
        ? ['A version that encrypts must decrypt: keep fewer for encrypting.']
        : []),
      ...(trimAfterS > 0 && trimAfterS < 3600 ? ['Versions are deleted after an hour at the earliest.'] : []),
    ],
    isFinal: false,
    deletes: trimAfterS > 0,
  };
}

type Minimums = Parameters<typeof useOf>[1];

function lostBy(key: Key, changed: Minimums): readonly string[] {
  const all = key.versions.map(({ version }) => version);
  const lost = all.filter((version) => useOf(version, key) !== 'nothing' && useOf(version, changed) === 'nothing');
  if (lost.length === 0) return [];
  return [`Ciphertexts of ${spanOf(lost)} no longer decrypt; their signatures and MACs no longer verify.`];
}

function silencedBy(key: Key, changed: Minimums): readonly string[] {
  const all = key.versions.map(({ version }) => version);
  const silenced = all.filter((version) => useOf(version, key) === 'encrypts' && useOf(version, changed) !== 'encrypts');
  return silenced.length === 0 ? [] : [`${capital(spanOf(silenced))} can no longer be requested for encrypting or signing.`];
}

/** The effect of deleting old versions. */
export function trimPreview(key: Key, minAvailable: number): Preview {
  const gone = key.versions.map(({ version }) => version).filter((version) => version < minAvailable);
  return {
    works: [],
    stops:
      gone.length === 0 ? [] : [`The material of ${spanOf(gone)} is deleted permanently. Nothing brings it back but a backup.`],
    refused: [
      ...(minAvailable <= key.minAvailable ? [`Versions below ${key.minAvailable} are deleted already.`] : []),
      ...(minAvailable > key.latest ? [`The latest version is ${key.latest}.`] : []),
      ...(key.minDecryption < minAvailable ? [`First raise the minimum version for decryption to ${minAvailable} or more.`] : []),
      ...(key.minEncryption < minAvailable ? [`First set the minimum version for encryption to ${minAvailable} or more.`] : []),
    ],
    isFinal: true,
    deletes: true,
  };
}

function minimumFaults(
  key: Key,
  { minDecryption, minEncryption }: Pick<Key, 'minDecryption' | 'minEncryption'>,
): readonly string[] {
  const faults: string[] = [];
  if (Math.max(minDecryption, minEncryption) > key.latest) faults.push(`The latest version is ${key.latest}.`);
  if (minEncryption > 0 && minEncryption < minDecryption)
    faults.push('The minimum for encryption must be 0, or at least the minimum for decryption.');
  if (minDecryption < key.minAvailable || minEncryption < key.minAvailable)
    faults.push(`Versions below ${key.minAvailable} are deleted: neither minimum may be lower.`);
  return faults;
}

const spanOf = (versions: readonly number[]): string => range(Math.min(...versions), Math.max(...versions));
const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
