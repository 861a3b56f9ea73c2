import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { ProviderError } from '@transitd/barrier';
import type { Config } from '@transitd/configuration';
import { reasonOf } from '@transitd/process';
import { credentialsOf, readProfile } from './awskms/credentials-file.ts';
import { readServiceAccount } from './gcpckms/google-token.ts';
import { readSecret } from './http/secret-file.ts';
import { secretFrom } from './secret-source.ts';

type Variables = Readonly<Record<string, string | undefined>>;

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
  readonly read: () => unknown;
}

/**
 * Reads the files with credentials that a seal names, as a node does before its next unseal. No provider is called.
 * @param variables - with the names of the cloud providers' own tools
 */
export function credentialFiles(seal: Config['seal'], variables: Variables): Promise<readonly CredentialFile[]> {
  return Promise.all(
    readersOf(seal, variables).map(async ({ file, isSecret, read }) => {
      try {
        await read();
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
      return [...secret(seal.token_file, (file) => secretIn(file, 'token')), ...tlsReaders(seal.tls)];
    case 'pkcs11':
      return secret(seal.pin_file, (file) => secretIn(file, 'pin'));
    case 'awskms': {
      const { credentials_file: own, web_identity_token_file: token, profile = variables['AWS_PROFILE'] ?? 'default' } = seal;
      if (token !== undefined) return tokenIn('seal.web_identity_token_file', token);
      if (own !== undefined) return secret(own, (file) => readProfile('seal.credentials_file', file, profile));
      if (credentialsOf(variables['AWS_ACCESS_KEY_ID'], variables['AWS_SECRET_ACCESS_KEY'], undefined) !== undefined) return [];
      const shared = variables['AWS_SHARED_CREDENTIALS_FILE'];
      if (shared !== undefined) return secret(shared, (file) => readProfile('AWS_SHARED_CREDENTIALS_FILE', file, profile));
      return variables['AWS_ROLE_ARN'] === undefined ? [] : tokenOf('AWS_WEB_IDENTITY_TOKEN_FILE', variables);
    }
    case 'azurekeyvault':
      if (seal.client_secret_file !== undefined)
        return secret(seal.client_secret_file, (file) => secretIn(file, 'client_secret'));
      return seal.client_secret_env === undefined ? tokenOf('AZURE_FEDERATED_TOKEN_FILE', variables) : [];
    case 'gcpckms':
      return secret(seal.credentials_file, async (file) => {
        const { private_key } = await readServiceAccount(file);
        parsed(`${file} does not contain a private key that can be used`, () => createPrivateKey(private_key));
      });
  }
}

const secret = (file: string | undefined, read: (file: string) => unknown): readonly Reader[] =>
  file === undefined ? [] : [{ file, isSecret: true, read: () => read(file) }];

const secretIn = (file: string, name: string): Promise<string> => secretFrom({ file, env: undefined }, name)();

const tokenIn = (setting: string, path: string | undefined): readonly Reader[] =>
  secret(path, (file) => readSecret(setting, file, 'token'));

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
