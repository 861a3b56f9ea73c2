/**
 * Provides the three functions of the `Reflect` metadata proposal that the dependency container of `@peculiar/x509` calls and that Node
 * lacks. An existing implementation is kept. Import this module before the library.
 */
const metadata = new WeakMap<object, Map<unknown, unknown>>();

function defineMetadata(key: unknown, value: unknown, target: object): void {
  const ofTarget = metadata.get(target) ?? new Map<unknown, unknown>();
  metadata.set(target, ofTarget.set(key, value));
}

const getOwnMetadata = (key: unknown, target: object): unknown => metadata.get(target)?.get(key);

function getMetadata(key: unknown, target: object): unknown {
  for (let at: object | null = target; at !== null; at = Object.getPrototypeOf(at)) {
    if (metadata.get(at)?.has(key)) return getOwnMetadata(key, at);
  }
  return undefined;
}

if (!('getMetadata' in Reflect)) Object.assign(Reflect, { defineMetadata, getMetadata, getOwnMetadata });
