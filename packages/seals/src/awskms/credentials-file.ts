import { ProviderError } from '@transitd/barrier';
import { readSecretFile, reasonOf } from '@transitd/process';
import type { AwsCredentials } from './aws-service.ts';

/**
 * Reads the credentials of a profile from a shared credentials file of AWS.
 * @param name - of the setting that names the file, for errors
 * @param user - id of the user who runs the node
 * @throws ProviderError `permission`
 */
export async function readProfile(name: string, file: string, profile: string, user?: number): Promise<AwsCredentials> {
  let text: string;
  try {
    text = readSecretFile(file, user).toString('utf8');
  } catch (error) {
    throw new ProviderError('permission', `${name} cannot be read: ${reasonOf(error)}`, { cause: error });
  }
  const settings = settingsIn(text, profile);
  const found = credentialsOf(
    settings.get('aws_access_key_id'),
    settings.get('aws_secret_access_key'),
    settings.get('aws_session_token'),
  );
  if (found !== undefined) return found;
  const other = otherSources.find((key) => settings.has(key));
  const why = other === undefined ? '' : `; it has ${other}, which is never followed: ${remedyFor(other)}`;
  throw new ProviderError('permission', `${name} ${file} does not contain an access key in the profile ${profile}${why}`);
}

/** Settings of a profile with which the tools of AWS get credentials from a program, a login, a role or another profile. */
const otherSources = [
  'credential_process',
  'credential_source',
  'login_session',
  'role_arn',
  'source_profile',
  'sso_account_id',
  'sso_session',
  'sso_start_url',
  'web_identity_token_file',
];

function remedyFor(key: string): string {
  if (key === 'role_arn' || key === 'web_identity_token_file') return `set seal.${key}`;
  return 'have another process write the access key into the file';
}

/** Returns the settings of a profile in the text of a shared credentials file of AWS; their names are in lowercase. */
function settingsIn(text: string, profile: string): ReadonlyMap<string, string> {
  const settings = new Map<string, string>();
  let section: string | undefined;
  for (const line of text.split(/\r?\n/)) {
    const heading = /^\s*\[\s*([^\]]+?)\s*\]\s*$/.exec(line);
    if (heading !== null) section = heading[1];
    const [, name, value = ''] = /^\s*([a-z_]+)\s*=\s*(.*?)\s*$/i.exec(line) ?? [];
    if (section === profile && name !== undefined) settings.set(name.toLowerCase(), value);
  }
  return settings;
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
