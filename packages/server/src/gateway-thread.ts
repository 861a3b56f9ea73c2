// The script of a gateway thread (decision 105).
import module from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import { allRoutes, createGatewayRouter, Limits } from '@transitd/api';
import { Connections, reading, uncountedBytes, unreadResponses } from '@transitd/http';
import { GatewayServices, gatewayCount } from '@transitd/node';
import { InvariantViolation } from '@transitd/raft-core';
import { AuditRelay } from './gateways/audit-relay.ts';
import { GatewayReports } from './gateways/gateway-reports.ts';
import type { FromGateway, GatewayData, ToGateway, UsesReport } from './gateways/messages.ts';
import { threadLimits, unreadBytesMax } from './gateways/node-limits.ts';
import { Passing } from './gateways/passing.ts';
import { loadOf } from './gateways/thread-load.ts';
import { createListener, Listener } from './listener.ts';
import { onWarnings } from './warnings.ts';

/** Interval at which the clocks of the machine are compared, in milliseconds. */
const clocksMs = 50;
/** Interval of the reports for the metrics, in milliseconds. */
const reportMs = 500;

const port = parentPort;
if (port === null) throw new InvariantViolation('this script runs in a worker thread');
const post = (message: FromGateway): void => port.postMessage(message);
const { config, memory, row, listeners: listening, limits: divided, main }: GatewayData = workerData;

onWarnings((warning, message) => post({ kind: 'warning', warning, message }));

/** Operations that show metrics run in the main thread. */
const noMetrics = (): never => {
  throw new InvariantViolation('a gateway renders no metrics');
};
const routes = allRoutes({ prometheus: noMetrics, json: noMetrics });
const services = new GatewayServices(config, { memory, row }, (reason) => post({ kind: 'lost', reason }));
const takeUses = (): UsesReport => ({ uses: services.uses.take(), hasLost: services.uses.takeLost() });
const own = threadLimits(divided, row);
const limits = new Limits(config.limits, own);
reading.divide(1 + gatewayCount(config));
unreadResponses.limit(unreadBytesMax(config));
const connections = new Connections(own.connections);
const reports = new GatewayReports((answers, asked) => {
  const load = loadOf(limits, connections, reports.inFlight);
  post({ kind: 'report', answers, counted: takeUses(), load, ...(asked !== undefined && { asked }) });
});
const audit =
  config.audit.length === 0
    ? undefined
    : new AuditRelay(
        config.audit.map(({ name }) => name),
        post,
      );
const passing = new Passing(main);

const listeners = listening.map(({ config: { max_request_size, headers_timeout, tls: files }, tls }, index) => {
  const front = createGatewayRouter({
    look: () => services.look(),
    activeStatus: () => services.activeStatus(),
    routes,
    limits,
    bodyBytesMax: max_request_size,
    bodyBytesHere: Math.min(max_request_size, Math.max(own.bodies.own, uncountedBytes)),
    trustedProxies: config.trusted_proxies,
    audit,
    begun: reports.begun,
    answered: reports.answered,
    pass: (req, res, body) => {
      reports.passed();
      passing.pass(index, req, res, body);
    },
  });
  return new Listener(front, (counted) => createListener({ headers_timeout, tls: files, context: tls }, counted), {
    connections,
  });
});

port.on('message', (message: ToGateway) => {
  switch (message.kind) {
    case 'session':
      services.open(message.session);
      break;
    case 'seal':
      services.seal();
      break;
    case 'contexts':
      for (const [index, context] of message.contexts.entries())
        if (context !== undefined) listeners[index]?.replaceContext(context);
      post({ kind: 'contexts', asked: message.asked });
      break;
    case 'report':
      reports.report(message.asked);
      break;
    case 'audited':
      audit?.audited(message.id, message.failure);
      break;
    case 'drain':
      void Promise.all(listeners.map((listener) => listener.drain())).then(() => {
        reports.report(); // the last answers
        post({ kind: 'drained', asked: message.asked });
      });
      break;
  }
});
// Otherwise Node writes newly compiled code while the thread ends, which took longer than allowed on a busy machine.
module.flushCompileCache();
setInterval(() => services.compareClocks(), clocksMs);
setInterval(() => reports.report(), reportMs);
await Promise.all(
  listeners.map((listener, index) => listener.listen(listening[index]?.bound ?? { host: '', port: 0 }, { shared: true })),
);
post({ kind: 'listening' });
