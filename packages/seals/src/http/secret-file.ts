import { ProviderError } from '@transitd/barrier';
import { readSecretFile, reasonOf } from '@transitd/process';

/**
 * Reads a credential from a file.
 * @param setting - that names the file, for errors
 * @param what - the credential is, for errors
 * @param user - id of the user who runs the node
 * @throws ProviderError `permission`
 */
export async function readSecret(setting: string, file: string, what: string, user?: number): Promise<string> {
  let secret: string;
  try {
    secret = readSecretFile(file, user).toString('utf8').trim();
  } catch (error) {
    throw new ProviderError('permission', `${setting} cannot be read: ${reasonOf(error)}`, { cause: error });
  }
  if (isSecret(secret)) return secret;
  throw new ProviderError('permission', `${setting} ${file} does not contain a ${what}`);
}

/** One line of printable characters: a token goes into a header. A token of a web identity may have 20,000. */
export const isSecret = (text: string): boolean => /^[\x21-\x7e]{1,20000}$/.test(text);
