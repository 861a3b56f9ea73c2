import type { Body } from '@transitd/http';
import type { Params } from '../operation/operation.ts';

/** Paths below a user or role that set a single member, by the name of the member. */
type FieldPaths = Readonly<Record<string, readonly string[]>>;

const cidrPaths = ['secret-id-bound-cidrs', 'bound-cidr-list'];

/** Members of an AppRole, under all their names. */
const ofRole: FieldPaths = {
  token_policies: ['policies'],
  policies: ['policies'],
  bind_secret_id: ['bind-secret-id'],
  secret_id_num_uses: ['secret-id-num-uses'],
  secret_id_ttl: ['secret-id-ttl'],
  secret_id_bound_cidrs: cidrPaths,
  bound_cidr_list: cidrPaths,
  token_bound_cidrs: ['token-bound-cidrs'],
  bound_cidrs: ['token-bound-cidrs'],
  token_num_uses: ['token-num-uses'],
  num_uses: ['token-num-uses'],
  token_ttl: ['token-ttl'],
  ttl: ['token-ttl'],
  token_max_ttl: ['token-max-ttl'],
  max_ttl: ['token-max-ttl'],
  token_period: ['period'],
  period: ['period'],
  role_id: ['role-id'],
};

const ofUser: FieldPaths = { password: ['password'], token_policies: ['policies'], policies: ['policies'] };

const pathsIn = (whole: string, fields: FieldPaths, body: Body = {}): readonly string[] =>
  Object.keys(body).flatMap((member) =>
    (Object.hasOwn(fields, member) ? (fields[member] ?? []) : []).map((path) => `${whole}/${path}`),
  );

/**
 * Returns the paths of the single fields that a write of a whole role sets. A denial of one of them refuses the write
 * ([decision 87](../../../../docs/decisions/0087-parameters-are-judged-where-they-count.md)).
 */
export const rolePathsIn = ({ method, name }: Params, body?: Body): readonly string[] =>
  pathsIn(`auth/${method}/role/${name}`, ofRole, body);

/** Returns the paths of the single fields that a write of a whole user sets; see `rolePathsIn`. */
export const userPathsIn = ({ method, name }: Params, body?: Body): readonly string[] =>
  pathsIn(`auth/${method}/users/${name}`, ofUser, body);
