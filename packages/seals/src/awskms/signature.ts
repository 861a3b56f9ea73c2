import { createHash, createHmac } from 'node:crypto';

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Of temporary credentials. */
  readonly sessionToken?: string;
}

/** A request to the path `/` without a query; the JSON protocols of AWS use only this path. */
export interface UnsignedRequest {
  readonly method: 'GET' | 'POST';
  /** Host name; with the port if it is not the default port of the scheme. */
  readonly host: string;
  /** Lowercase names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface SigningScope {
  readonly credentials: AwsCredentials;
  readonly region: string;
  readonly service: string;
  readonly time: Date;
}

const algorithm = 'AWS4-HMAC-SHA256';

/** Returns the headers of the request together with its signature (AWS Signature Version 4). Every header is signed. */
export function signedHeaders(
  { method, host, headers, body }: UnsignedRequest,
  { credentials, region, service, time }: SigningScope,
): Readonly<Record<string, string>> {
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  const stamp = time.toISOString().replace(/[-:]|\.\d{3}/g, '');
  const day = stamp.slice(0, 8);
  const all: Readonly<Record<string, string>> = {
    ...headers,
    host,
    'x-amz-date': stamp,
    ...(sessionToken !== undefined && { 'x-amz-security-token': sessionToken }),
  };
  const names = Object.keys(all).sort();
  const canonicalHeaders = names.map((name) => `${name}:${all[name]?.trim().replace(/ +/g, ' ')}\n`).join('');
  const signed = names.join(';');
  const canonicalRequest = [method, '/', '', canonicalHeaders, signed, sha256(body)].join('\n');
  const scope = `${day}/${region}/${service}/aws4_request`;
  const text = [algorithm, stamp, scope, sha256(canonicalRequest)].join('\n');
  const key = [day, region, service, 'aws4_request'].reduce<Buffer>(hmac, Buffer.from(`AWS4${secretAccessKey}`));
  const signature = hmac(key, text).toString('hex');
  const authorization = `${algorithm} Credential=${accessKeyId}/${scope}, SignedHeaders=${signed}, Signature=${signature}`;
  return { ...all, authorization };
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

const hmac = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
