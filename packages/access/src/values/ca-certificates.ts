import { certificatesIn } from '@transitd/process';
import { invalidRequest } from './errors.ts';

/**
 * Refuses a text that is not certificates in PEM. An empty text stands for the default ones.
 * @throws AccessError `invalid_request`
 */
export function checkCertificates(field: string, pem: string): void {
  if (pem === '') return;
  try {
    certificatesIn(pem);
  } catch {
    throw invalidRequest(`${field} must be certificates in PEM`);
  }
}
