import { isDeepStrictEqual } from 'node:util';
import type { Config, ListenerConfig } from './schema.ts';

/**
 * Returns the present configuration with those changes of the next one that need no restart. `changedKeys` of the result and the next one
 * are the changes that need one.
 */
export const reloaded = (present: Config, next: Config): Config => ({
  ...present,
  log: { ...present.log, level: next.log.level },
  listeners: present.listeners.map((listener, index) => reloadedListener(listener, next.listeners[index])),
});

/**
 * An entry for another address may have certificates and authorities that are not meant for this listener, which then keeps its own. A
 * server decides when it is created whether it asks for certificates, so it gets no authorities later, and loses none.
 */
function reloadedListener(present: ListenerConfig, next: ListenerConfig | undefined): ListenerConfig {
  if (present.tls === undefined || next?.tls === undefined || !isDeepStrictEqual(present.address, next.address)) return present;
  const { cert_file, key_file, min_version } = next.tls;
  const isAsking = (tls: ListenerConfig['tls']): boolean => tls?.client_ca_file !== undefined;
  const { client_ca_file, client_crl_file } = isAsking(next.tls) === isAsking(present.tls) ? next.tls : present.tls;
  const { client_auth } = present.tls;
  return { ...present, tls: { cert_file, key_file, client_ca_file, client_crl_file, client_auth, min_version } };
}

/** Returns the names of the keys whose values differ, such as `listeners.0.address`. Lists of different lengths count as one key. */
export function changedKeys(before: unknown, after: unknown, path: readonly string[] = []): readonly string[] {
  if (!isSection(before) || !isSection(after) || lengthOf(before) !== lengthOf(after))
    return isDeepStrictEqual(before, after) ? [] : [path.join('.')];
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...keys].flatMap((key) => changedKeys(before[key], after[key], [...path, key]));
}

/** Returns whether the value consists of further keys. An address does not: the file has it as one text. */
const isSection = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !('port' in value);
/** Returns the length of a list; undefined for another section. */
const lengthOf = (section: object): number | undefined => (Array.isArray(section) ? section.length : undefined);
