import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

/** Creates a key and its self-signed certificate in `folder`. @param altNames - such as `DNS:localhost,IP:127.0.0.1` */
export function makeCertificate(
  folder: string,
  name: string,
  days = 2,
  altNames = '',
): { readonly key_file: string; readonly cert_file: string } {
  const [key_file, cert_file] = [join(folder, `${name}.key`), join(folder, `${name}.crt`)];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const files = ['-keyout', key_file, '-out', cert_file, '-days', String(days), '-subj', `/CN=${name}`];
  const names = altNames === '' ? [] : ['-addext', `subjectAltName=${altNames}`];
  execFileSync('openssl', ['req', '-x509', ...curve, ...files, ...names], { stdio: 'ignore' });
  return { key_file, cert_file };
}
