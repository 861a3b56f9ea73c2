import { canonicalUrl, plainPolicyText } from '@transitd/access';
import { type FieldDetail, type Spellings, texts } from '@transitd/http';
import { canonicalCidr } from '@transitd/process';
import { keyIdDigits, mechanismNamed, saltLengthNamed } from '@transitd/transit-engine';

/** Makes the spellings of a text field from a function that returns the canonical spelling; undefined for an invalid value. */
const ofText =
  (canonical: (text: string) => string | undefined): Spellings =>
  (value) => {
    const spelled = value === undefined ? undefined : canonical(String(value));
    return spelled === undefined ? [] : [spelled];
  };

/** A list of address blocks: `10.1.2.3/8` is the same as `10.0.0.0/8`, and a single address is a block of one address. */
const cidrSpellings = ofText(canonicalCidr);
export const cidrs = <const Detail extends FieldDetail = FieldDetail>(about: string, detail?: Detail) =>
  texts(about, { limits: true, spellings: cidrSpellings, ...detail } as unknown as Detail);
export const urlSpellings = ofText(canonicalUrl);
/** An https server by its URL, or by its host with or without a port. */
export const serverSpellings = ofText((server) =>
  canonicalUrl(server.includes('://') ? server : `https://${server}`)?.replace(/\/+$/, ''),
);
/** Returns the path of a mount, which may be written with slashes around it. */
export const mountPath = (written: string): string => written.replace(/^\/|\/$/g, '');
export const mountPathSpellings = ofText(mountPath);
/** Policies may be sent in base64. */
export const policySpellings = ofText(plainPolicyText);
/** A PKCS#11 mechanism by name or number. */
export const mechanismSpellings = ofText(mechanismNamed);
/** The id of a PKCS#11 key in hexadecimal, with or without `0x`. */
export const keyIdSpellings = ofText(keyIdDigits);
/** A salt length: `hash` is the same as −1, `auto` the same as 0. */
export const saltLengthSpellings = ofText(saltLengthNamed);

/** The type of the tokens of a login or a token role. A default stands for the type of token that it issues. */
export const tokenTypeSpellings: Spellings = (value) =>
  value === 'default' || value === 'default-service' || value === ''
    ? ['default-service', 'default', 'service']
    : value === 'default-batch'
      ? ['default-batch', 'batch']
      : [];

const setInType = (type: unknown): string | undefined => /^mldsa-(44|65|87)$/.exec(String(type))?.[1];

/** A key type: `mldsa-44` is the same as `ml-dsa` with the parameter set 44. */
export const keyTypeSpellings: Spellings = (value, { parameter_set: set }) =>
  typeof value === 'string' && setInType(value) !== undefined
    ? [value, 'ml-dsa']
    : value === 'ml-dsa' && isSet(set)
      ? [value, `mldsa-${set}`]
      : [];

/** The name of the type may contain the parameter set. */
export const parameterSetSpellings: Spellings = (value, { type }) => {
  const set = setInType(type);
  return (value === undefined || value === '') && set !== undefined ? [set] : [];
};

const isSet = (set: unknown): set is string | number => typeof set === 'string' || typeof set === 'number';
