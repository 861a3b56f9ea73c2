import type { Route } from './operation.ts';
import { namesKey, operation } from './transit-keys.ts';

const sign = operation(
  'keys-csr',
  'update',
  { name: 'string', version: 'string', csr: 'string' },
  async ({ certificates }, { version, csr: template }, { params }) => ({
    data: JSON.stringify(await certificates.request(params['name'] ?? '', { version, template })),
  }),
);

const set = operation(
  'keys-set-certificate',
  'update',
  { name: 'string', version: 'string', certificate_chain: 'string' },
  async ({ certificates }, asked, { params }) => {
    const { chain, ...of } = await certificates.setChain(params['name'] ?? '', {
      version: asked.version,
      chain: asked.certificate_chain,
    });
    return { data: JSON.stringify({ ...of, certificate_chain: chain }) };
  },
);

/** Requests for certificates and the chains that come of them, below a mount. */
export const transitCertificateRoutes: readonly Route[] = [
  { path: 'keys/:name/csr', accepts: namesKey, operations: { POST: sign } },
  { path: 'keys/:name/set-certificate', accepts: namesKey, operations: { POST: set } },
];
