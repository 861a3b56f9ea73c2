import { dataReply, integer, object, string, text } from '@transitd/http';
import { UseTally } from '@transitd/transit-engine';
import { data } from '../operation/answers.ts';
import type { Route } from '../operation/operation.ts';
import { keyOperation, namesKey } from './keys.ts';
import { keyName } from './transit-operation.ts';

const version = text('Key version: `latest` or a number', { default: 'latest' });

const sign = keyOperation(
  'keys-csr',
  'update',
  {
    about: 'Create a certificate signing request with a key version',
    takes: {
      name: keyName,
      version,
      csr: text('CSR template in PEM, from which the subject and the extensions are copied; if omitted, both are empty', {
        long: true,
      }),
    },
    answers: data(object({ name: string, type: string, version: integer, csr: string })),
  },
  async ({ certificates, mountId }, { values: { name, version, csr: template } }, { services }) => {
    const tally = new UseTally();
    const made = await certificates.request(name, { version, template }, tally);
    return { ...dataReply(made), onSent: () => services.uses.count(mountId, name, tally) };
  },
);

const set = keyOperation(
  'keys-set-certificate',
  'update',
  {
    about: 'Set the certificate chain of a key version',
    takes: {
      name: keyName,
      version,
      certificate_chain: text('Certificates in PEM; the certificate of the key comes first', { required: true, long: true }),
    },
    answers: data(object({ name: string, type: string, version: integer, certificate_chain: string })),
  },
  async ({ certificates }, { values: { name, version, certificate_chain: given } }) => {
    const { chain, ...of } = await certificates.setChain(name, { version, chain: given });
    return dataReply({ ...of, certificate_chain: chain });
  },
);

/** Routes of certificate signing requests and certificate chains, below a mount. */
export const transitCertificateRoutes: readonly Route[] = [
  { path: 'keys/:name/csr', accepts: namesKey, operations: { POST: sign } },
  { path: 'keys/:name/set-certificate', accepts: namesKey, operations: { POST: set } },
];
