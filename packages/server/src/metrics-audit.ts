import type { AuditObserver } from '@transitd/audit';
import { Counter, type Registry, Summary } from 'prom-client';
import { quantiles } from './metrics-happenings.ts';

/** Figures of the audit's entries, by sink: its name in the configuration. */
export function registerAudit({ prefix, registers }: { readonly prefix: string; readonly registers: Registry[] }): AuditObserver {
  const labelNames = ['device'] as const;
  const figures = (type: string) => ({
    ms: new Summary({
      name: `${prefix}_audit_log_${type}`,
      help: `Milliseconds until a sink had the entry of a ${type}`,
      labelNames,
      registers,
      ...quantiles,
    }),
    failures: new Counter({
      name: `${prefix}_audit_log_${type}_failure`,
      help: `Entries of a ${type} that a sink did not take`,
      labelNames,
      registers,
    }),
  });
  const by = { request: figures('request'), response: figures('response') };
  return {
    logged: (type, device, ms) => by[type].ms.observe({ device }, ms),
    failed: (type, device) => by[type].failures.inc({ device }),
  };
}
