import type { Config } from '@transitd/configuration';
import { type AwsService, requireSdk } from './awskms/aws-service.ts';
import { AwsKmsSeal } from './awskms/awskms-seal.ts';
import { CredentialSource, defaultSessionName, type Identity } from './awskms/credentials.ts';
import { Sts } from './awskms/sts.ts';
import { AzureKeyVaultSeal } from './azurekeyvault/azure-key-vault-seal.ts';
import { azureToken } from './azurekeyvault/azure-token.ts';
import { azureClouds } from './azurekeyvault/clouds.ts';
import type { SealBackend } from './backend/seal-backend.ts';
import { GcpKmsSeal } from './gcpckms/gcp-kms-seal.ts';
import { googleToken } from './gcpckms/google-token.ts';
import type { Connect } from './http/exchange.ts';
import { secretFrom } from './secret-source.ts';
import { type Variables, withoutEmpty } from './variables.ts';

type CloudConfig = Extract<Config['seal'], { type: 'awskms' | 'azurekeyvault' | 'gcpckms' }>;

type AwsConfig = Extract<CloudConfig, { type: 'awskms' }>;

export interface CloudSealParts {
  readonly env: Variables;
  readonly connect: Connect;
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number;
}

const googleKms = 'https://cloudkms.googleapis.com';

/** Returns a seal with a key of a cloud provider. Sends no request. @throws StartError */
export function cloudSeal(config: CloudConfig, given: CloudSealParts): SealBackend {
  const parts = { ...given, env: withoutEmpty(given.env) };
  switch (config.type) {
    case 'awskms':
      return awsKmsSeal(config, parts);
    case 'azurekeyvault':
      return azureKeyVaultSeal(config, parts);
    case 'gcpckms': {
      const { project, region, key_ring: keyRing, crypto_key: cryptoKey, credentials_file: credentialsFile } = config;
      const token = googleToken({ ...parts, credentialsFile });
      return new GcpKmsSeal({ project, region, keyRing, cryptoKey, token, exchange: parts.connect(googleKms) });
    }
  }
}

function awsKmsSeal(config: AwsConfig, { env, connect, nowMs }: CloudSealParts): SealBackend {
  requireSdk();
  const { region, kms_key_id: keyId, credentials_file: credentialsFile } = config;
  const profile = config.profile ?? env['AWS_PROFILE'] ?? 'default';
  const domain = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
  const serviceAt = (address: string): AwsService => {
    const { origin: endpoint } = new URL(address);
    return { region, endpoint, exchange: connect(endpoint), nowMs };
  };
  const sts = new Sts(serviceAt(`https://sts.${region}.${domain}`));
  const credentials = new CredentialSource({ env, credentialsFile, profile, identity: identityIn(config), sts, connect, nowMs });
  return new AwsKmsSeal({ service: serviceAt(config.endpoint ?? `https://kms.${region}.${domain}`), keyId, credentials });
}

function identityIn({ role_arn: arn, role_session_name: name, web_identity_token_file: tokenFile }: AwsConfig): Identity {
  if (arn === undefined) return { type: 'found' };
  const role = { arn, sessionName: name ?? defaultSessionName };
  return tokenFile === undefined ? { type: 'assumed', role } : { type: 'web', role, tokenFile };
}

function azureKeyVaultSeal(
  config: Extract<CloudConfig, { type: 'azurekeyvault' }>,
  { env, connect, nowMs }: CloudSealParts,
): SealBackend {
  const { vault_name: vaultName, key_name: keyName, tenant_id: tenantId, client_id: clientId } = config;
  const { client_secret_file: file, client_secret_env: variable } = config;
  const cloud = azureClouds[config.environment];
  const clientSecret =
    file === undefined && variable === undefined ? undefined : secretFrom({ file, env: variable }, 'client_secret', env);
  const federatedTokenFile = env['AZURE_FEDERATED_TOKEN_FILE'];
  const token = azureToken({ cloud, tenantId, clientId, clientSecret, federatedTokenFile, connect, nowMs });
  const exchange = connect(`https://${vaultName.toLowerCase()}.${cloud.vaults}`);
  return new AzureKeyVaultSeal({ vaultName, keyName, token, exchange });
}
