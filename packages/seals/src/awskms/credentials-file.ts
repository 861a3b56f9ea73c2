import type { AwsCredentials } from './signature.ts';

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
