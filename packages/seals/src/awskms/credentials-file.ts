import { readFile } from 'node:fs/promises';
import { ProviderError } from '@transitd/barrier';
import { reasonOf, requireOwnerWritable } from '@transitd/process';
import type { AwsCredentials } from './signature.ts';

/**
 * Reads the credentials of a profile from a shared credentials file of AWS.
 * @param name - of the setting that names the file, for errors
 * @throws ProviderError `permission`
 */
export async function readProfile(name: string, file: string, profile: string): Promise<AwsCredentials> {
  let text: string;
  try {
    requireOwnerWritable(file);
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new ProviderError('permission', `${name} cannot be read: ${reasonOf(error)}`, { cause: error });
  }
  const found = credentialsIn(text, profile);
  if (found !== undefined) return found;
  throw new ProviderError('permission', `${name} ${file} does not contain an access key in the profile ${profile}`);
}

/**
 * Returns the credentials of a profile in the text of a shared credentials file of AWS; undefined if the profile is missing or has no key.
 */
export function credentialsIn(text: string, profile: string): AwsCredentials | undefined {
  const settings = new Map<string, string>();
  let section: string | undefined;
  for (const line of text.split(/\r?\n/)) {
    const heading = /^\s*\[\s*([^\]]+?)\s*\]\s*$/.exec(line);
    if (heading !== null) section = heading[1];
    const [, name, value = ''] = /^\s*([a-z_]+)\s*=\s*(.*?)\s*$/i.exec(line) ?? [];
    if (section === profile && name !== undefined) settings.set(name.toLowerCase(), value);
  }
  return credentialsOf(
    settings.get('aws_access_key_id'),
    settings.get('aws_secret_access_key'),
    settings.get('aws_session_token'),
  );
}

/** Returns the credentials; undefined without a key or its secret. */
export const credentialsOf = (
  accessKeyId: string | undefined,
  secretAccessKey: string | undefined,
  sessionToken: string | undefined,
): AwsCredentials | undefined =>
  isSet(accessKeyId) && isSet(secretAccessKey)
    ? { accessKeyId, secretAccessKey, ...(isSet(sessionToken) && { sessionToken }) }
    : undefined;

const isSet = (text: string | undefined): text is string => text !== undefined && /^[\x21-\x7e]+$/.test(text);
