/** A right that a request may need on a path. */
export type Capability = 'create' | 'read' | 'update' | 'patch' | 'delete' | 'list' | 'sudo';

export const capabilities: readonly Capability[] = ['create', 'delete', 'list', 'patch', 'read', 'sudo', 'update'];

/** A set of capabilities, one bit each. */
export type CapabilityBits = number;

export const bitOf = (capability: Capability): CapabilityBits => 1 << capabilities.indexOf(capability);

export const bitsOf = (granted: readonly Capability[]): CapabilityBits =>
  granted.reduce((bits, capability) => bits | bitOf(capability), 0);

/** Returns the capabilities of a set in alphabetical order. */
export const namesOf = (bits: CapabilityBits): Capability[] =>
  capabilities.filter((capability) => (bits & bitOf(capability)) !== 0);

export const isCapability = (word: string): word is Capability => (capabilities as readonly string[]).includes(word);

/** Capabilities granted by each word of the older `policy = "…"` syntax. `deny` is handled separately. */
export const legacyPolicyWords: ReadonlyMap<string, CapabilityBits> = new Map([
  ['read', bitsOf(['read', 'list'])],
  ['write', bitsOf(['create', 'read', 'update', 'delete', 'list'])],
  ['sudo', bitsOf(['create', 'read', 'update', 'delete', 'list', 'sudo'])],
]);
