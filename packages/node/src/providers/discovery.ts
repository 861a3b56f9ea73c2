import { checkJsonLimits, runAtOnce } from '@transitd/event-loop';

/** Limits on the text of a discovery document, checked before it is parsed: some sixty members, most of them texts or short lists. */
const documentLimits = {
  depthMax: 8,
  valuesMax: 8192,
  containersMax: 1024,
  membersMax: () => 256,
  textCharsMax: 64 * 1024,
  refusal: (reason: string) => new Error(`the discovery document has ${reason}`),
};

/** Returns the address of the document of an issuer (OpenID Connect Discovery 1.0 §4). */
export const documentUrl = (issuer: string): string => `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;

/** Returns the address of the key set that the document of an issuer names. @throws Error */
export function keySetUrl(document: string, issuer: string): string {
  runAtOnce(checkJsonLimits(document, documentLimits));
  let parsed: unknown;
  try {
    parsed = JSON.parse(document);
  } catch {
    throw new Error('the discovery document is not JSON');
  }
  const { issuer: named, jwks_uri: url } = Object(parsed) as Readonly<Record<string, unknown>>;
  // Otherwise one provider could pass its keys off as those of another (§4.3).
  if (named !== issuer) throw new Error('the discovery document has another issuer');
  if (typeof url !== 'string' || !URL.canParse(url) || new URL(url).protocol !== 'https:')
    throw new Error('the discovery document has no jwks_uri with https');
  return url;
}
