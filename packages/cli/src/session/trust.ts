import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setDefaultCACertificates } from 'node:tls';
import { StartError } from '@transitd/process';

/** Makes this process trust only the authorities in PEM files. @throws StartError */
export function trustOnly(...files: readonly string[]): void {
  setDefaultCACertificates(files.map(authoritiesIn));
}

function authoritiesIn(file: string): string {
  try {
    const pem = readFileSync(file, 'utf8');
    new X509Certificate(pem);
    return pem;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason =
      code?.startsWith('E') && !code.startsWith('ERR_') ? `cannot be read: ${code}` : `contains no PEM certificate: ${message}`;
    throw new StartError(`the CA file ${file} ${reason}`);
  }
}
