import { type CurveName, encodeEcdsa } from '../key-pairs/ec-forms.ts';
import { encodeRsa } from '../key-pairs/rsa.ts';
import type { VersionMaterial } from '../keys/new-version.ts';
import { invalidBackup } from './key-backup.ts';
import type { Members } from './peer-members.ts';

const curves: ReadonlyMap<string, CurveName> = new Map([
  ['ecdsa-p256', 'P-256'],
  ['ecdsa-p384', 'P-384'],
  ['ecdsa-p521', 'P-521'],
]);

/**
 * Converts the halves of a version; the private half is empty if it is unknown. The caller checks later that they belong together. Returns
 * undefined for types without key pairs.
 * @throws TransitError `invalid_request`
 */
export function peerKeyPair(type: string, entry: Members): VersionMaterial | undefined {
  const curve = curves.get(type);
  if (curve !== undefined) return ecdsaPair(curve, entry);
  if (type === 'ed25519') return { material: entry.bytes('key'), publicKey: entry.bytes('public_key') };
  return type.startsWith('rsa-') ? rsaPair(entry) : undefined;
}

function ecdsaPair(curve: CurveName, entry: Members): VersionMaterial {
  const [x, y] = [entry.magnitude('ec_x'), entry.magnitude('ec_y')];
  if (x === undefined || y === undefined) throw missing();
  return encodeEcdsa(curve, { x, y, number: entry.magnitude('ec_d') }) ?? tooLong();
}

function rsaPair(entry: Members): VersionMaterial {
  const hasPrivate = entry.has('rsa_key');
  const key = hasPrivate ? entry.object('rsa_key') : entry.object('rsa_public_key');
  const [modulus, exponent] = [key.magnitude('N'), key.magnitude('E')];
  if (modulus === undefined || exponent === undefined) throw missing();
  if (!hasPrivate) return encodeRsa({ modulus, exponent });
  const [p, q] = key.magnitudes('Primes');
  const ready = key.object('Precomputed');
  const [d, dP, dQ] = [key.magnitude('D'), ready.magnitude('Dp'), ready.magnitude('Dq')];
  const qInverse = ready.magnitude('Qinv');
  if (p === undefined || q === undefined) throw missing();
  if (d === undefined || dP === undefined || dQ === undefined || qInverse === undefined) throw missing();
  const secrets = [d, p, q, dP, dQ, qInverse];
  const pair = encodeRsa({ modulus, exponent, secrets });
  for (const secret of secrets) secret.fill(0);
  return pair;
}

const missing = (): Error => invalidBackup('a version lacks a part of its key pair');

function tooLong(): never {
  throw invalidBackup('a number is out of the range of its curve');
}
