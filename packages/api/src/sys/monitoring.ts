import { authTypes } from '@transitd/access';
import { addressText, type Config } from '@transitd/configuration';
import { boolean, dataReply, list, object, string, topLevelDataReply } from '@transitd/http';
import { version } from '@transitd/process';
import * as answers from '../operation/answers.ts';
import { guarded, type Route } from '../operation/operation.ts';

/** Cross-origin requests are never allowed: browsers can use the API only from its own origin. */
const cors = guarded({
  name: 'config-cors',
  about: 'Read the CORS configuration; CORS is always disabled',
  answers: answers.topLevelData(object({ enabled: boolean })),
  where: 'here',
  capability: 'read',
  sudo: true,
  run: () => topLevelDataReply({ enabled: false }),
});

const kinds = { auth: ['token', ...authTypes], secret: ['transit'] } as const;
const detailedSchema = object({ builtin: boolean, deprecation_status: string, name: string, type: string, version: string });

/** All types are built in. */
const catalog = guarded({
  name: 'plugins-catalog',
  about: 'List the available types of engines and auth methods',
  answers: answers.data(
    object({ auth: list(string), database: list(string), secret: list(string), detailed: list(detailedSchema) }),
  ),
  where: 'here',
  capability: 'read',
  sudo: true,
  run: () => {
    const detailed = Object.entries(kinds).flatMap(([type, names]) =>
      names.map((name) => ({ builtin: true, deprecation_status: 'supported', name, type, version })),
    );
    return dataReply(JSON.stringify({ ...kinds, database: [], detailed }));
  },
});

/** Returns the settings that are not secret. This is an allowlist: a new setting stays hidden until it is added here. */
const sanitized = ({ node_id, api_addr, cluster_addr, listeners, seal, log, telemetry }: Config): object => ({
  node_id,
  api_addr: api_addr ?? '',
  cluster_addr: cluster_addr ?? '',
  log_level: log.level,
  listeners: listeners.map(({ address, tls_disable }) => ({
    type: 'tcp',
    config: { address: addressText(address), tls_disable },
  })),
  seals: [{ type: seal.type, disabled: false }],
  storage: { type: 'raft' },
  telemetry: { metrics_prefix: telemetry.prefix },
});

const configState = guarded({
  name: 'config-state',
  about: 'Read the configuration of this node, without secrets',
  answers: answers.data(
    object({
      node_id: string,
      api_addr: string,
      cluster_addr: string,
      log_level: string,
      listeners: list(object({ type: string, config: object({ address: string, tls_disable: boolean }) })),
      seals: list(object({ type: string, disabled: boolean })),
      storage: object({ type: string }),
      telemetry: object({ metrics_prefix: string }),
    }),
  ),
  where: 'here',
  capability: 'read',
  run: ({ node }) => dataReply(JSON.stringify(sanitized(node.config))),
});

/** Routes that monitoring systems and clients of the peers read. */
export const monitoringRoutes: readonly Route[] = [
  { path: 'sys/config/cors', operations: { GET: cors } },
  { path: 'sys/plugins/catalog', operations: { GET: catalog } },
  { path: 'sys/config/state/sanitized', operations: { GET: configState } },
];
