/**
 * `@peculiar/x509` finds its own algorithms through a container that keeps notes on classes by `Reflect`'s metadata, a proposal that
 * Node does not have. These are the three functions that it calls; an implementation that is there already stays. To be
 * imported before the library.
 */
const notes = new WeakMap<object, Map<unknown, unknown>>();

function defineMetadata(key: unknown, value: unknown, target: object): void {
  const ofTarget = notes.get(target) ?? new Map<unknown, unknown>();
  notes.set(target, ofTarget.set(key, value));
}

const getOwnMetadata = (key: unknown, target: object): unknown => notes.get(target)?.get(key);

function getMetadata(key: unknown, target: object): unknown {
  for (let at: object | null = target; at !== null; at = Object.getPrototypeOf(at)) {
    if (notes.get(at)?.has(key)) return getOwnMetadata(key, at);
  }
  return undefined;
}

if (!('getMetadata' in Reflect)) Object.assign(Reflect, { defineMetadata, getMetadata, getOwnMetadata });
