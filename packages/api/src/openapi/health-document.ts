import { codeMax, codeMin, defaultCodes, type HealthReport } from '@transitd/health';
import {
  bool,
  boolean,
  constant,
  type FieldSchema,
  int,
  integer,
  type JsonSchema,
  object,
  schemaOf,
  string,
  time,
} from '@transitd/http';
import { shared } from '../operation/answers.ts';

/** A schema for every member of the type. If a member has no schema, the code does not compile. */
type MembersOf<T> = { readonly [Name in keyof T]-?: JsonSchema };
type Optional<T> = { [Name in keyof T]-?: undefined extends T[Name] ? Name : never }[keyof T];

const mode = constant('disabled', 'primary', 'secondary', 'bootstrapping', 'unknown');

const always: MembersOf<Omit<HealthReport, Optional<HealthReport>>> = {
  initialized: boolean,
  sealed: boolean,
  standby: boolean,
  replication_performance_mode: mode,
  replication_dr_mode: mode,
  server_time_utc: { ...integer, description: 'Unix seconds' },
  version: string,
  cluster_name: string,
  cluster_id: string,
  performance_standby: boolean,
  enterprise: { const: true },
  echo_duration_ms: integer,
  clock_skew_ms: integer,
  replication_primary_canary_age_ms: integer,
};
const sometimes: MembersOf<Pick<HealthReport, Optional<HealthReport>>> = {
  removed_from_cluster: boolean,
  ha_connection_healthy: boolean,
  last_request_forwarding_heartbeat_ms: integer,
  seal_failure: string,
  last_wal: integer,
  license: object({ expiry_time: time, state: constant('autoloaded'), terminated: boolean }),
};

export const healthSchema = object(always, sometimes);

const fields: FieldSchema = {
  standbyok: bool('Return `activecode` on a standby', { default: false }),
  perfstandbyok: bool('Return `activecode` on a performance standby', { default: false }),
  ...Object.fromEntries(
    Object.entries(defaultCodes).map(([name, code]) => [
      name,
      int(`Status to return instead of ${code}`, { default: code, min: codeMin, max: codeMax }),
    ]),
  ),
};

const parameters = Object.entries(fields).map(([name, field]) => {
  const { description, ...schema } = schemaOf(field);
  return { name, in: 'query', required: false, description, schema };
});

const states =
  '200 active, 429 standby, 472, 473 performance standby, 474 no contact, 501 uninitialized, 503 sealed, 530 removed';

const healthOperation = (operationId: string, summary: string, content: (schema: JsonSchema) => object) => ({
  operationId,
  summary,
  tags: ['sys'],
  parameters,
  responses: {
    400: { description: 'Invalid parameter', ...content(shared('Errors')) },
    default: {
      description: `State of the node: ${states}, unless a parameter sets another status`,
      ...content(healthSchema),
    },
  },
  security: [],
  'x-vault-unauthenticated': true,
});

/** The path item of `sys/health`. This path is not in the routes: the router answers it first. */
export const healthPath = {
  get: healthOperation('sys-health', 'Read the health of this node', (schema) => ({
    content: { 'application/json': { schema } },
  })),
  head: healthOperation('sys-health-head', 'Read the health of this node, without a body', () => ({})),
};
