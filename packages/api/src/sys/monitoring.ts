import { addressText, type Config } from '@transitd/configuration';
import { boolean, dataReply, list, object, RequestError, string, text, topLevelDataReply } from '@transitd/http';
import { version } from '@transitd/process';
import { InvariantViolation } from '@transitd/raft-core';
import { authTypes } from '../auth/auth-methods.ts';
import * as answers from '../operation/answers.ts';
import { continuedRights } from '../operation/continued-rights.ts';
import { followedLevels, type LiveLog, logFormats } from '../operation/live-log.ts';
import { type GuardedOperation, guarded, type Route } from '../operation/operation.ts';
import { shown } from '../operation/shown.ts';

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
    return dataReply({ ...kinds, database: [], detailed });
  },
});

const listenerSchema = object({ type: string, config: object({ address: string, tls_disable: boolean }) });

/** The settings that are not secret. This is an allowlist: a new setting stays hidden until it is added here. */
const shownConfig = shown<Config>({
  node_id: [string, ({ node_id }) => node_id],
  api_addr: [string, ({ api_addr = '' }) => api_addr],
  cluster_addr: [string, ({ cluster_addr = '' }) => cluster_addr],
  log_level: [string, ({ log }) => log.level],
  listeners: [
    list(listenerSchema),
    ({ listeners }) =>
      listeners.map(({ address, tls_disable }) => ({ type: 'tcp', config: { address: addressText(address), tls_disable } })),
  ],
  seals: [list(object({ type: string, disabled: boolean })), ({ seal }) => [{ type: seal.type, disabled: false }]],
  storage: [object({ type: string }), ({ storage }) => ({ type: storage.type })],
  telemetry: [object({ metrics_prefix: string }), ({ telemetry }) => ({ metrics_prefix: telemetry.prefix })],
});

const configState = guarded({
  name: 'config-state',
  about: 'Read the configuration of this node, without secrets',
  answers: answers.data(shownConfig.schema),
  where: 'here',
  capability: 'read',
  run: ({ node }) => dataReply(shownConfig.json(node.config)),
});

/** Streams the log of this node. */
const monitor = (log: LiveLog): GuardedOperation =>
  guarded({
    name: 'monitor',
    about: 'Follow the log of this node until the caller disconnects',
    takes: {
      log_level: text('Lowest level of the lines', { oneOf: followedLevels, default: 'info' }),
      log_format: text('Form of the lines: text, or one JSON object each', { oneOf: logFormats, default: 'standard' }),
    },
    answers: answers.content('text/plain', string),
    where: 'here',
    onSecondary: true,
    capability: 'read',
    sudo: true,
    run: (context, { wrapTtlS, values, ...call }) => {
      if (wrapTtlS !== undefined) throw new RequestError('invalid_request', 'this response cannot be wrapped');
      const mayContinue = continuedRights(context, call, 'sudo', 'read');
      const level = oneOf(followedLevels, values.log_level ?? 'info', 'log_level');
      const format = oneOf(logFormats, values.log_format ?? 'standard', 'log_format');
      return {
        status: 200,
        headers: { 'Content-Type': 'text/plain; charset=utf-8' },
        stream: log.follow({ level, format, mayContinue }),
      };
    },
  });

/** @throws RequestError */
function oneOf<const T extends string>(known: readonly T[], given: string, name: string): T {
  const found = known.find((one) => one === given);
  if (found === undefined) throw new RequestError('invalid_request', `${name} must be one of ${known.join(', ')}`);
  return found;
}

/** For a thread without a log, which never runs this operation. */
export const noLiveLog: LiveLog = {
  follow: () => {
    throw new InvariantViolation('this thread has no log');
  },
};

/** Routes that monitoring systems and clients of the peers read. */
export const monitoringRoutes = (log: LiveLog): readonly Route[] => [
  { path: 'sys/config/cors', operations: { GET: cors } },
  { path: 'sys/plugins/catalog', operations: { GET: catalog } },
  { path: 'sys/config/state/sanitized', operations: { GET: configState } },
  { path: 'sys/monitor', operations: { GET: monitor(log) } },
];
