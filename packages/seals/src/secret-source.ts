import { StartError } from '@transitd/process';
import { isSecret, readSecret } from './http/secret-file.ts';

/** Where a credential comes from; exactly one of the two is set. */
export interface SecretSource {
  readonly file: string | undefined;
  /** Name of an environment variable. */
  readonly env: string | undefined;
}

/**
 * Returns a function that returns a credential. It reads a file at each call, so that another process may replace the file.
 * @param name - name of the setting for error texts, such as `token`
 * @throws StartError if the variable contains no credential. The returned function throws ProviderError `permission` if the file contains
 * none
 */
export function secretFrom(
  { file, env }: SecretSource,
  name: string,
  variables: Readonly<Record<string, string | undefined>> = process.env,
): () => Promise<string> {
  if (file === undefined) {
    const secret = variables[env ?? '']?.trim() ?? '';
    if (!isSecret(secret)) throw new StartError(`seal: the environment variable ${env} does not contain a ${name}`);
    return async () => secret;
  }
  return () => readSecret(`seal.${name}_file`, file, name);
}
