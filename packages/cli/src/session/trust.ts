import { X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setDefaultCACertificates } from 'node:tls';
import { StartError } from '@transitd/process';
import type { TlsSettings } from './environment.ts';

/** Returns the PEM files of the only authorities to trust; empty if none are set. @throws StartError */
export function authorityFiles({ caFile, caPath }: Pick<TlsSettings, 'caFile' | 'caPath'>): readonly string[] {
  if (caFile !== undefined) return [caFile];
  if (caPath === undefined) return [];
  let files: readonly string[];
  try {
    files = readdirSync(caPath, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [] : [join(caPath, entry.name)],
    );
  } catch (error) {
    throw new StartError(`the CA folder ${caPath} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
  if (files.length === 0) throw new StartError(`the CA folder ${caPath} has no files`);
  return files;
}

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
