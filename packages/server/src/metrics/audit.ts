import { type AuditObserver, fileChanges } from '@transitd/audit';
import { Counter } from 'prom-client';
import { durationHistogram, type MetricTarget } from './register.ts';

/**
 * Registers the metrics of audit entries. The label `device` is the name of the audit device in the configuration.
 * @param devices - names of the devices: what happens to them counts from 0, so that `increase` sees the first time
 */
export function registerAuditMetrics({ prefix, registers }: MetricTarget, devices: readonly string[]): AuditObserver {
  const labelNames = ['device'] as const;
  const metricsOf = (type: string) => ({
    ms: durationHistogram({
      name: `${prefix}_audit_log_${type}`,
      help: `Time to write the audit entry of a ${type} to an audit device, in milliseconds`,
      labelNames,
      registers,
    }),
    failures: new Counter({
      name: `${prefix}_audit_log_${type}_failure`,
      help: `Audit entries of a ${type} that an audit device failed to write`,
      labelNames,
      registers,
    }),
  });
  const by = { request: metricsOf('request'), response: metricsOf('response') };
  for (const { failures } of Object.values(by)) for (const device of devices) failures.inc({ device }, 0);
  const changes = new Counter({
    name: `${prefix}_audit_file_changes`,
    help: 'Times that the file of an audit device was renamed without SIGHUP, removed or truncated while in use',
    labelNames: ['device', 'change'],
    registers,
  });
  for (const device of devices) for (const change of fileChanges) changes.inc({ device, change }, 0);
  return {
    logged: (type, device, ms) => by[type].ms.observe({ device }, ms),
    failed: (type, device) => by[type].failures.inc({ device }),
    changed: (change, device) => changes.inc({ device, change }),
  };
}
