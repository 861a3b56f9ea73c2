// Reads answers whose form is not certain: a node may run another release. A missing member, or one of another type, becomes a default.

export type Json = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

export const objectIn = (value: unknown): Json => (isObject(value) ? value : {});
export const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
export const textIn = (value: unknown): string => (typeof value === 'string' ? value : '');
export const textsIn = (value: unknown): readonly string[] => listIn(value).filter((one) => typeof one === 'string');
export const flagIn = (value: unknown): boolean => value === true;
export const numberIn = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? value : 0);
export const numberOrNone = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined;
