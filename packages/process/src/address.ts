/** An IP address: its length in bits and its value. */
interface Address {
  readonly bits: 32 | 128;
  readonly value: bigint;
}

interface Block extends Address {
  /** Number of leading bits that all addresses of the block share. */
  readonly prefix: number;
}

/** Returns whether a text is an address block, such as `10.0.0.0/8` or `2001:db8::/32`, or a single address. */
export const isCidr = (text: string): boolean => parseBlock(text) !== undefined;

/**
 * Returns the canonical spelling of an address block or an address: the first address of the block, IPv6 in eight
 * full groups, and the prefix length. Undefined for any other text.
 */
export function canonicalCidr(text: string): string | undefined {
  const block = parseBlock(text);
  if (block === undefined) return undefined;
  const { bits, prefix } = block;
  const rest = BigInt(bits - prefix);
  const first = (block.value >> rest) << rest;
  const [size, mark] = bits === 32 ? [8n, '.'] : [16n, ':'];
  const parts = Array.from({ length: bits / Number(size) }, (_, at) =>
    BigInt.asUintN(Number(size), first >> (BigInt(at) * size)),
  );
  return `${parts
    .reverse()
    .map((part) => part.toString(bits === 32 ? 10 : 16))
    .join(mark)}/${prefix}`;
}

/**
 * Returns whether the address is in one of the blocks. An empty list contains every address; a text that is not an address is in no
 * block.
 */
export function withinCidrs(cidrs: readonly string[], address: string): boolean {
  if (cidrs.length === 0) return true;
  const parsed = parseAddress(plainAddress(address));
  return parsed !== undefined && cidrs.some((cidr) => contains(parseBlock(cidr), parsed));
}

/**
 * Returns the intersection of two lists; an empty list contains every address. Of two blocks, one contains the other or they are
 * disjoint.
 */
export function commonCidrs(one: readonly string[], other: readonly string[]): readonly string[] {
  if (one.length === 0 || other.length === 0) return [...one, ...other];
  const nested = (inner: string, outer: string): boolean => {
    const [within, around] = [parseBlock(inner), parseBlock(outer)];
    return within !== undefined && around !== undefined && within.prefix >= around.prefix && contains(around, within);
  };
  const common = one.flatMap((a) => other.flatMap((b) => (nested(a, b) ? [a] : nested(b, a) ? [b] : [])));
  return [...new Set(common)];
}

/** Unwraps an IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2), as dual-stack sockets report it. */
export const plainAddress = (address: string): string => /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;

/**
 * Returns the key under which a caller is counted: its IPv4 address, or the /64 of its IPv6 address, since one caller usually has a
 * whole /64.
 */
export function callerGroup(address: string): string {
  const plain = plainAddress(address);
  const parsed = plain.includes(':') ? parseAddress(plain) : undefined;
  return parsed === undefined ? plain : `${(parsed.value >> 64n).toString(16)}::/64`;
}

function contains(block: Block | undefined, { bits, value }: Address): boolean {
  if (block?.bits !== bits) return false;
  const rest = BigInt(bits - block.prefix);
  return value >> rest === block.value >> rest;
}

function parseBlock(text: string): Block | undefined {
  const [written = '', prefix, ...more] = text.split('/');
  const address = parseAddress(written);
  if (address === undefined || more.length > 0) return undefined;
  if (prefix === undefined) return { ...address, prefix: address.bits };
  return /^(?:0|[1-9]\d{0,2})$/.test(prefix) && Number(prefix) <= address.bits
    ? { ...address, prefix: Number(prefix) }
    : undefined;
}

function parseAddress(text: string): Address | undefined {
  const value = text.includes(':') ? parseV6(text) : parseV4(text);
  return value === undefined ? undefined : { bits: text.includes(':') ? 128 : 32, value };
}

/** Parses four decimal numbers. Rejects leading zeros, which other parsers read as octal. */
function parseV4(text: string): bigint | undefined {
  const parts = text.split('.');
  if (parts.length !== 4 || !parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255)) return undefined;
  return parts.reduce((value, part) => value * 256n + BigInt(part), 0n);
}

/** Parses RFC 4291 §2.2: eight groups; `::` once, for one or more zero groups; the last two groups may be an IPv4 address. */
function parseV6(text: string): bigint | undefined {
  const halves = text.split('::');
  const [front, back] = halves.map((half, at) => groupsOf(half, at === halves.length - 1));
  if (halves.length > 2 || front === undefined || (halves.length === 2 && back === undefined)) return undefined;
  const given = front.length + (back?.length ?? 0);
  if (halves.length === 1 ? given !== 8 : given > 7) return undefined;
  const groups = [...front, ...Array<bigint>(8 - given).fill(0n), ...(back ?? [])];
  return groups.reduce((value, group) => value * 65_536n + group, 0n);
}

function groupsOf(half: string, ends: boolean): bigint[] | undefined {
  if (half === '') return [];
  const groups: bigint[] = [];
  const parts = half.split(':');
  for (const [at, part] of parts.entries()) {
    const v4 = ends && at === parts.length - 1 && part.includes('.') ? parseV4(part) : undefined;
    if (v4 !== undefined) groups.push(v4 >> 16n, v4 & 0xffffn);
    else if (/^[0-9a-fA-F]{1,4}$/.test(part)) groups.push(BigInt(`0x${part}`));
    else return undefined;
  }
  return groups;
}
