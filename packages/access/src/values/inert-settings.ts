import { invalidRequest } from './errors.ts';

/**
 * Settings that have no effect here, by their name in requests. They are stored and returned, because clients compare what they wrote with
 * what they read, and would write it again and again.
 */
export type InertSettings = Readonly<Record<string, string | number | boolean | readonly string[]>>;

const charsMax = 4096;

/**
 * Returns the settings after a change. An empty text or list removes a setting, as clients do not expect it back.
 * @throws AccessError `invalid_request`
 */
export function changedInert(present: InertSettings, change: InertSettings | undefined): InertSettings {
  if (change === undefined) return present;
  const isKept = (value: InertSettings[string]): boolean => (typeof value !== 'object' ? value !== '' : value.length > 0);
  const next = Object.fromEntries(Object.entries({ ...present, ...change }).filter(([, value]) => isKept(value)));
  if (JSON.stringify(next).length > charsMax)
    throw invalidRequest(`the settings without effect must have at most ${charsMax} characters in all`);
  return next;
}
