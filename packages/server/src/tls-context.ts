import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import type { ListenerConfig } from './config.ts';
import { StartError } from './exit.ts';

/**
 * What a TLS listener takes from its files, as they are now. It is complete: a context that replaces another one keeps nothing of
 * it, the lowest version included.
 * @throws StartError
 */
export function tlsContext({
  cert_file,
  key_file,
  client_ca_file,
  min_version,
}: NonNullable<ListenerConfig['tls']>): SecureContextOptions {
  const context: SecureContextOptions = {
    cert: readCertificate(cert_file),
    key: read(key_file),
    ...(client_ca_file !== undefined && { ca: readCertificate(client_ca_file) }),
    minVersion: `TLSv${min_version}`,
  };
  try {
    createSecureContext(context);
  } catch (error) {
    throw new StartError(`listeners: ${key_file} is not the key of ${cert_file} in PEM: ${reasonOf(error)}`);
  }
  return context;
}

function read(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new StartError(`listeners: ${file} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`);
  }
}

/** OpenSSL takes a list of certificates without any for an empty one. */
function readCertificate(file: string): Buffer {
  const pem = read(file);
  try {
    new X509Certificate(pem);
  } catch (error) {
    throw new StartError(`listeners: ${file} holds no certificate in PEM: ${reasonOf(error)}`);
  }
  return pem;
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
