import type { SendRequest } from './connection.ts';
import type { Envelope, Issued, Written } from './envelope.ts';
import { inPage, type Page } from './pages.ts';
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

export interface TokenProperties {
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

/** Names a token: by the token or by its accessor. */
export type TokenNamed = { readonly token: string } | { readonly accessor: string };

const read = { repeatable: true };

/** Calls below `auth/token`. Without a named token they use the client's own token. */
export class TokenCalls {
  readonly #send: SendRequest;

  constructor(send: SendRequest) {
    this.#send = send;
  }

  create(
    request: TokenRequest = {},
    { role, wrapTtl }: { readonly role?: string; readonly wrapTtl?: string } = {},
  ): Promise<Issued> {
    const path = below('auth/token/create', ...(role === undefined ? [] : [role]));
    return this.#send('POST', path, request, { ...(wrapTtl !== undefined && { wrapTtl }) });
  }

  createOrphan(request: TokenRequest = {}, { wrapTtl }: { readonly wrapTtl?: string } = {}): Promise<Issued> {
    return this.#send('POST', 'auth/token/create-orphan', request, { ...(wrapTtl !== undefined && { wrapTtl }) });
  }

  look(named?: TokenNamed): Promise<Envelope<TokenProperties>> {
    if (named === undefined) return this.#send('GET', 'auth/token/lookup-self');
    return this.#send('POST', 'accessor' in named ? 'auth/token/lookup-accessor' : 'auth/token/lookup', named, read);
  }

  /** Renews a token. @param increment - requested TTL, such as `1h` */
  renew(named?: TokenNamed, increment?: string): Promise<Issued> {
    const body = { ...named, ...(increment !== undefined && { increment }) };
    if (named === undefined) return this.#send('POST', 'auth/token/renew-self', body);
    return this.#send('POST', 'accessor' in named ? 'auth/token/renew-accessor' : 'auth/token/renew', body);
  }

  /** Revokes a token and its descendants. */
  revoke(named?: TokenNamed): Promise<Written> {
    if (named === undefined) return this.#send('POST', 'auth/token/revoke-self');
    return this.#send('POST', 'accessor' in named ? 'auth/token/revoke-accessor' : 'auth/token/revoke', named);
  }

  /** Revokes a token; its children become orphans. */
  revokeOrphan(token: string): Promise<Written> {
    return this.#send('POST', 'auth/token/revoke-orphan', { token });
  }

  accessors(page: Page = {}): Promise<Envelope<{ readonly keys: readonly string[] }>> {
    return this.#send('LIST', 'auth/token/accessors', undefined, inPage(page));
  }

  roles(page: Page = {}): Promise<Envelope<{ readonly keys: readonly string[] }>> {
    return this.#send('LIST', 'auth/token/roles', undefined, inPage(page));
  }

  role(name: string): Promise<Envelope<Readonly<Record<string, unknown>>>> {
    return this.#send('GET', below('auth/token/roles', name));
  }

  writeRole(name: string, role: Readonly<Record<string, unknown>>): Promise<Written> {
    return this.#send('POST', below('auth/token/roles', name), role);
  }

  deleteRole(name: string): Promise<Written> {
    return this.#send('DELETE', below('auth/token/roles', name));
  }
}

/** Token calls and logins. */
export class AuthCalls {
  readonly #send: SendRequest;
  readonly token: TokenCalls;

  constructor(send: SendRequest) {
    this.#send = send;
    this.token = new TokenCalls(send);
  }

  userpass({ username, password, path = 'userpass' }: { username: string; password: string; path?: string }): Promise<Issued> {
    return this.#send('POST', below('auth', ...below(path), 'login', username), { password }, { open: true });
  }

  approle({ roleId, secretId, path = 'approle' }: { roleId: string; secretId?: string; path?: string }): Promise<Issued> {
    const body = { role_id: roleId, ...(secretId !== undefined && { secret_id: secretId }) };
    return this.#send('POST', below('auth', ...below(path), 'login'), body, { open: true });
  }

  jwt({ jwt, role, path = 'jwt' }: { jwt: string; role?: string; path?: string }): Promise<Issued> {
    return this.#send(
      'POST',
      below('auth', ...below(path), 'login'),
      { jwt, ...(role !== undefined && { role }) },
      { open: true },
    );
  }

  /** @param jwt - token of the service account of a pod */
  kubernetes({ jwt, role, path = 'kubernetes' }: { jwt: string; role: string; path?: string }): Promise<Issued> {
    return this.jwt({ jwt, role, path });
  }

  /** Logs in with the TLS client certificate of the connection, which the `fetch` of the client presents. */
  cert({ name, path = 'cert' }: { name?: string; path?: string } = {}): Promise<Issued> {
    return this.#send('POST', below('auth', ...below(path), 'login'), { ...(name !== undefined && { name }) }, { open: true });
  }
}
