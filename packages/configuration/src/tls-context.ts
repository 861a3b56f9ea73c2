import { constants, randomBytes, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { certificatesIn, readNamedFile, reasonOf, StartError } from '@transitd/process';
import type { ListenerConfig } from './schema.ts';

/**
 * All suites of TLS 1.3, and those of TLS 1.2 with an AEAD and forward secrecy (RFC 9325 §4.2). CBC suites are excluded, because padding
 * oracles were found in them again and again.
 */
export const cipherSuites = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
].join(':');

/** Length of the keys that encrypt session tickets, as Node.js takes them. */
const ticketKeyBytes = 48;
/** Half the length of a session id context, which has at most 32 characters. */
const sessionIdContextBytes = 16;

/**
 * Reads the files of a TLS listener. The options are complete and include the minimum TLS version, because a new context keeps no option of
 * the context that it replaces.
 *
 * Each call makes new keys for session tickets, so a session resumes only at a server that got the same options, such as another thread of
 * one listener. A listener that asks for certificates resumes none: a resumed session has no certificate that was verified against the
 * authorities and revocation lists of now.
 * @throws StartError
 */
export function tlsContext({
  cert_file,
  key_file,
  client_ca_file,
  client_crl_file,
  min_version,
}: NonNullable<ListenerConfig['tls']>): SecureContextOptions {
  const context: SecureContextOptions = {
    cert: readCertificate(cert_file),
    key: read(key_file),
    minVersion: `TLSv${min_version}`,
    ciphers: cipherSuites,
    honorCipherOrder: true,
    sessionIdContext: randomBytes(sessionIdContextBytes).toString('hex'), // by default made of the command line, and threads have others
    ...(client_ca_file === undefined
      ? { ticketKeys: randomBytes(ticketKeyBytes) }
      : { ca: readAuthorities(client_ca_file), secureOptions: constants.SSL_OP_NO_TICKET }),
    ...(client_crl_file !== undefined && { crl: readRevocationLists(client_crl_file) }),
  };
  try {
    createSecureContext(context);
  } catch (error) {
    throw new StartError(`listeners: ${key_file} is not the key of ${cert_file} in PEM: ${reasonOf(error)}`);
  }
  return context;
}

const read = (file: string): Buffer => readNamedFile('listeners', file);

/** Reads a PEM file and requires a certificate in it, because OpenSSL accepts a file without certificates as an empty list. */
function readCertificate(file: string): Buffer {
  const pem = read(file);
  try {
    new X509Certificate(pem);
  } catch (error) {
    throw new StartError(`listeners: ${file} holds no certificate in PEM: ${reasonOf(error)}`);
  }
  return pem;
}

/** Returns the certificates of a PEM file one by one, each in PEM. OpenSSL would ignore those after one that it cannot read. */
function readAuthorities(file: string): string[] {
  const pem = read(file).toString('latin1');
  try {
    return certificatesIn(pem).map(String);
  } catch (error) {
    throw new StartError(`listeners: ${file} must hold certificates in PEM: ${reasonOf(error)}`);
  }
}

/** Returns the revocation lists of a PEM file one by one: Node would read only the first of them. */
function readRevocationLists(file: string): string[] {
  const pem = read(file).toString('latin1');
  const lists = pem.match(/-----BEGIN X509 CRL-----[^-]*-----END X509 CRL-----/g) ?? [];
  if (lists.length === 0) throw new StartError(`listeners: ${file} holds no certificate revocation list in PEM`);
  try {
    createSecureContext({ crl: lists });
  } catch (error) {
    throw new StartError(`listeners: ${file} holds no certificate revocation list in PEM: ${reasonOf(error)}`);
  }
  return lists;
}
