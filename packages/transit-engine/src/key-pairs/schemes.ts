import type { CurveName } from './ec-forms.ts';
import { ecdsa } from './ecdsa.ts';
import type { KeyPairScheme } from './key-pair.ts';
import { rsa } from './rsa.ts';

/** ECDSA by curve. */
export const ecdsaSchemes: Readonly<Record<CurveName, KeyPairScheme>> = {
  'P-256': ecdsa('P-256', 'ecdsa-p256'),
  'P-384': ecdsa('P-384', 'ecdsa-p384'),
  'P-521': ecdsa('P-521', 'ecdsa-p521'),
};

/** RSA by bits of the modulus. */
export const rsaSchemes: Readonly<Record<2048 | 3072 | 4096, KeyPairScheme>> = {
  2048: rsa(2048),
  3072: rsa(3072),
  4096: rsa(4096),
};
