import type { Ask } from './client.ts';
import type { Envelope, Issued, Written } from './envelope.ts';
import { below } from './paths.ts';

export interface TokenRequest {
  readonly id?: string;
  readonly policies?: readonly string[];
  readonly meta?: Readonly<Record<string, string>>;
  readonly no_parent?: boolean;
  readonly no_default_policy?: boolean;
  readonly renewable?: boolean;
  readonly ttl?: string;
  readonly explicit_max_ttl?: string;
  readonly period?: string;
  readonly display_name?: string;
  readonly num_uses?: number;
  readonly type?: 'service' | 'batch';
}

export interface TokenSeen {
  readonly id: string;
  readonly accessor: string;
  readonly creation_time: number;
  readonly creation_ttl: number;
  readonly display_name: string;
  readonly expire_time: string | null;
  readonly explicit_max_ttl: number;
  readonly meta: Readonly<Record<string, string>> | null;
  readonly num_uses: number;
  readonly orphan: boolean;
  readonly path: string;
  readonly policies: readonly string[];
  readonly renewable: boolean;
  readonly ttl: number;
  readonly type: string;
}

/** A token by itself, or by its accessor. */
export type TokenNamed = { readonly token: string } | { readonly accessor: string };

const read = { repeatable: true };

/** Tokens. None is the client's own, which a call without a name is about. */
export class TokenCalls {
  readonly #ask: Ask;

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  create(
    request: TokenRequest = {},
    { role, wrapTtl }: { readonly role?: string; readonly wrapTtl?: string } = {},
  ): Promise<Issued> {
    const path = below('auth/token/create', ...(role === undefined ? [] : [role]));
    return this.#ask('POST', path, request, { ...(wrapTtl !== undefined && { wrapTtl }) });
  }

  createOrphan(request: TokenRequest = {}, { wrapTtl }: { readonly wrapTtl?: string } = {}): Promise<Issued> {
    return this.#ask('POST', 'auth/token/create-orphan', request, { ...(wrapTtl !== undefined && { wrapTtl }) });
  }

  look(named?: TokenNamed): Promise<Envelope<TokenSeen>> {
    if (named === undefined) return this.#ask('GET', 'auth/token/lookup-self');
    return this.#ask('POST', 'accessor' in named ? 'auth/token/lookup-accessor' : 'auth/token/lookup', named, read);
  }

  /** @param increment - for how long, such as `1h` */
  renew(named?: TokenNamed, increment?: string): Promise<Issued> {
    const body = { ...named, ...(increment !== undefined && { increment }) };
    if (named === undefined) return this.#ask('POST', 'auth/token/renew-self', body);
    return this.#ask('POST', 'accessor' in named ? 'auth/token/renew-accessor' : 'auth/token/renew', body);
  }

  /** … and what was made with it. */
  revoke(named?: TokenNamed): Promise<Written> {
    if (named === undefined) return this.#ask('POST', 'auth/token/revoke-self');
    return this.#ask('POST', 'accessor' in named ? 'auth/token/revoke-accessor' : 'auth/token/revoke', named);
  }

  /** … and nothing of what was made with it. */
  revokeOrphan(token: string): Promise<Written> {
    return this.#ask('POST', 'auth/token/revoke-orphan', { token });
  }

  accessors(): Promise<Envelope<{ readonly keys: readonly string[] }>> {
    return this.#ask('LIST', 'auth/token/accessors');
  }

  roles(): Promise<Envelope<{ readonly keys: readonly string[] }>> {
    return this.#ask('LIST', 'auth/token/roles');
  }

  role(name: string): Promise<Envelope<Readonly<Record<string, unknown>>>> {
    return this.#ask('GET', below('auth/token/roles', name));
  }

  writeRole(name: string, role: Readonly<Record<string, unknown>>): Promise<Written> {
    return this.#ask('POST', below('auth/token/roles', name), role);
  }

  deleteRole(name: string): Promise<Written> {
    return this.#ask('DELETE', below('auth/token/roles', name));
  }
}

/** Tokens, and the logins by which they are had. */
export class AuthCalls {
  readonly #ask: Ask;
  readonly token: TokenCalls;

  constructor(ask: Ask) {
    this.#ask = ask;
    this.token = new TokenCalls(ask);
  }

  userpass({ username, password, path = 'userpass' }: { username: string; password: string; path?: string }): Promise<Issued> {
    return this.#ask('POST', below('auth', ...below(path), 'login', username), { password }, { open: true });
  }

  approle({ roleId, secretId, path = 'approle' }: { roleId: string; secretId?: string; path?: string }): Promise<Issued> {
    const body = { role_id: roleId, ...(secretId !== undefined && { secret_id: secretId }) };
    return this.#ask('POST', below('auth', ...below(path), 'login'), body, { open: true });
  }

  jwt({ jwt, role, path = 'jwt' }: { jwt: string; role?: string; path?: string }): Promise<Issued> {
    return this.#ask(
      'POST',
      below('auth', ...below(path), 'login'),
      { jwt, ...(role !== undefined && { role }) },
      { open: true },
    );
  }
}
