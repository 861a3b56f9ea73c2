import { ProviderError } from '@transitd/barrier';
import { fetchAccessToken, grantRequest } from '../http/access-token.ts';
import type { Connect } from '../http/exchange.ts';
import { type Credential, Expiring } from '../http/expiring.ts';
import { readSecret } from '../http/secret-file.ts';
import type { AzureCloud } from './clouds.ts';

export interface AzureTokenParts {
  readonly cloud: AzureCloud;
  readonly tenantId: string | undefined;
  readonly clientId: string | undefined;
  /** Reads the secret of the application at each call. Absent if a federated token or the managed identity is used. */
  readonly clientSecret: (() => Promise<string>) | undefined;
  /** File with a Kubernetes token that the application trusts (`AZURE_FEDERATED_TOKEN_FILE`). */
  readonly federatedTokenFile: string | undefined;
  readonly connect: Connect;
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number;
}

const instanceAddress = 'http://169.254.169.254';

/**
 * Keeps an access token for the vaults: for an application with a secret or a federated token, otherwise for the managed identity of the
 * instance. `get` throws ProviderError.
 */
export function azureToken(parts: AzureTokenParts): Expiring<string> {
  return new Expiring(() => fetchToken(parts), parts.nowMs);
}

async function fetchToken(parts: AzureTokenParts): Promise<Credential<string>> {
  const { clientSecret, federatedTokenFile } = parts;
  if (clientSecret !== undefined) return fromAuthority(parts, { client_secret: await clientSecret() });
  if (federatedTokenFile === undefined) return fromInstance(parts);
  return fromAuthority(parts, {
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: await readSecret('AZURE_FEDERATED_TOKEN_FILE', federatedTokenFile, 'token'),
  });
}

async function fromAuthority(
  { cloud, tenantId, clientId, connect, nowMs }: AzureTokenParts,
  proof: Readonly<Record<string, string>>,
): Promise<Credential<string>> {
  if (tenantId === undefined || clientId === undefined)
    throw new ProviderError(
      'permission',
      'the azurekeyvault seal needs tenant_id and client_id with a secret or a federated token',
    );
  const name = `the authority ${cloud.authority}`;
  const form = { grant_type: 'client_credentials', client_id: clientId, scope: `https://${cloud.vaults}/.default`, ...proof };
  const request = grantRequest(`/${encodeURIComponent(tenantId)}/oauth2/v2.0/token`, form);
  return fetchAccessToken({ connect, address: cloud.authority, name, nowMs }, request);
}

async function fromInstance({ cloud, clientId, connect, nowMs }: AzureTokenParts): Promise<Credential<string>> {
  const name = 'the managed identity of this instance';
  const query = new URLSearchParams({
    'api-version': '2018-02-01',
    resource: `https://${cloud.vaults}`,
    ...(clientId !== undefined && { client_id: clientId }),
  });
  const path = `/metadata/identity/oauth2/token?${query}`;
  const request = { method: 'GET', path, headers: { metadata: 'true' } } as const;
  return fetchAccessToken({ connect, address: instanceAddress, name, nowMs }, request);
}
