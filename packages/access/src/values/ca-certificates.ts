import { X509Certificate } from 'node:crypto';
import { invalidRequest } from './errors.ts';

/**
 * Refuses a text that holds no certificates in PEM, or one that cannot be read. An empty text stands for the default ones.
 * @throws AccessError `invalid_request`
 */
export function checkCertificates(field: string, pem: string): void {
  if (pem === '') return;
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  try {
    for (const block of blocks) new X509Certificate(block);
    if (blocks.length > 0) return;
  } catch {
    // the same refusal
  }
  throw invalidRequest(`${field} must be certificates in PEM`);
}
