import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { ProviderError } from '@transitd/barrier';
import type { Config } from '@transitd/configuration';
import { reasonOf } from '@transitd/process';
import { credentialsOf, readProfile } from './awskms/credentials-file.ts';
import { readServiceAccount } from './gcpckms/google-token.ts';
import { readSecret } from './http/secret-file.ts';
import { type Variables, withoutEmpty } from './variables.ts';

/** A file that a seal with a provider reads, as a node would find it. */
export interface CredentialFile {
  readonly file: string;
  /** Why a node could not use the file; absent if it could. Contains nothing of its content. */
  readonly fault?: string;
  /** Whether the file contains a secret that every user of the machine can read. */
  readonly isExposed: boolean;
}

interface Reader {
  readonly file: string;
  readonly isSecret: boolean;
  /** Reads and parses the file as a node does. @throws Error */
  readonly read: (user: number | undefined) => unknown;
}

/**
 * Reads the files with credentials that a seal names, as a node does before its next unseal. No provider is called.
 * @param variables - with the names of the cloud providers' own tools
 * @param user - id of the user who runs the node
 */
export function credentialFiles(seal: Config['seal'], variables: Variables, user?: number): Promise<readonly CredentialFile[]> {
  return Promise.all(
    readersOf(seal, withoutEmpty(variables)).map(async ({ file, isSecret, read }) => {
      try {
        await read(user);
        return { file, isExposed: isSecret && (statSync(file).mode & 0o004) !== 0 };
      } catch (error) {
        const fault = error instanceof ProviderError ? error.message : reasonOf(error);
        return { file, fault, isExposed: false };
      }
    }),
  );
}

function readersOf(seal: Config['seal'], variables: Variables): readonly Reader[] {
  switch (seal.type) {
    case 'shamir':
    case 'static':
      return [];
    case 'transit':
      return [...secret(seal.token_file, secretIn('seal.token_file', 'token')), ...tlsReaders(seal.tls)];
    case 'pkcs11':
      return secret(seal.pin_file, secretIn('seal.pin_file', 'pin'));
    case 'awskms': {
      const { credentials_file: own, web_identity_token_file: token, profile = variables['AWS_PROFILE'] ?? 'default' } = seal;
      if (token !== undefined) return tokenIn('seal.web_identity_token_file', token);
      if (own !== undefined) return secret(own, (file, user) => readProfile('seal.credentials_file', file, profile, user));
      if (credentialsOf(variables['AWS_ACCESS_KEY_ID'], variables['AWS_SECRET_ACCESS_KEY'], undefined) !== undefined) return [];
      const shared = variables['AWS_SHARED_CREDENTIALS_FILE'];
      if (shared !== undefined)
        return secret(shared, (file, user) => readProfile('AWS_SHARED_CREDENTIALS_FILE', file, profile, user));
      return variables['AWS_ROLE_ARN'] === undefined ? [] : tokenOf('AWS_WEB_IDENTITY_TOKEN_FILE', variables);
    }
    case 'azurekeyvault':
      if (seal.client_secret_file !== undefined)
        return secret(seal.client_secret_file, secretIn('seal.client_secret_file', 'client_secret'));
      return seal.client_secret_env === undefined ? tokenOf('AZURE_FEDERATED_TOKEN_FILE', variables) : [];
    case 'gcpckms':
      return secret(seal.credentials_file, async (file, user) => {
        const { private_key } = await readServiceAccount(file, user);
        parsed(`${file} does not contain a private key that can be used`, () => createPrivateKey(private_key));
      });
  }
}

type Read = (file: string, user: number | undefined) => unknown;

const secret = (file: string | undefined, read: Read): readonly Reader[] =>
  file === undefined ? [] : [{ file, isSecret: true, read: (user) => read(file, user) }];

const secretIn =
  (setting: string, what: string): Read =>
  (file, user) =>
    readSecret(setting, file, what, user);

const tokenIn = (setting: string, path: string | undefined): readonly Reader[] => secret(path, secretIn(setting, 'token'));

const tokenOf = (variable: string, variables: Variables): readonly Reader[] => tokenIn(variable, variables[variable]);

function tlsReaders(tls: Extract<Config['seal'], { type: 'transit' }>['tls']): readonly Reader[] {
  const { ca_file: ca, cert_file: cert, key_file: key } = tls;
  const text = (file: string): string => readFileSync(file, 'utf8');
  const certificate = (file: string): Reader => {
    const read = (): unknown => {
      const pem = text(file);
      return parsed(`${file} does not contain a certificate in PEM`, () => new X509Certificate(pem));
    };
    return { file, isSecret: false, read };
  };
  const privateKey = (file: string): unknown => {
    const pem = { key: text(file), ...(cert !== undefined && { cert: text(cert) }) };
    return parsed(`${file} does not contain the private key of ${cert}`, () => createSecureContext(pem));
  };
  return [...[ca, cert].flatMap((file) => (file === undefined ? [] : [certificate(file)])), ...secret(key, privateKey)];
}

/** @throws Error with this text instead of that of a parser, which could contain a part of the file */
function parsed<T>(fault: string, parse: () => T): T {
  try {
    return parse();
  } catch {
    throw new Error(fault);
  }
}
