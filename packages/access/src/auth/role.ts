import { changedSettings, type TokenSettings, type TokenSettingsChange } from '../tokens/token-settings.ts';
import { type Changed, given } from '../values/given.ts';
import { changedInert, type InertSettings } from '../values/inert-settings.ts';

/** A role of an auth method: its own settings, and those of the tokens of its logins. */
interface Role {
  readonly inert?: InertSettings;
  readonly token: TokenSettings;
}

export type RoleChange<R extends Role> = Changed<Omit<R, 'token'>> & { readonly token: TokenSettingsChange };

/** Returns a role after a change. @throws AccessError `invalid_request` */
export const changedRole = <R extends Role>(present: R, { token, ...change }: RoleChange<R>): R => ({
  ...present,
  ...given(change),
  ...(present.inert && { inert: changedInert(present.inert, (change as { inert?: InertSettings }).inert) }),
  token: changedSettings(present.token, token),
});
