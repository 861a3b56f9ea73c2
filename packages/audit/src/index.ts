export {
  type AuditDeviceConfig,
  AuditDevices,
  type AuditObserver,
  type AuditWriter,
  type EntryType,
  noAudit,
} from './audit-devices.ts';
export { fileChanges } from './audit-file.ts';
export { AuditKey, ensureAuditKey, initialAuditKey } from './audit-key.ts';
export type { AuditedMount } from './entry.ts';
export { AuditError, Exchange } from './exchange.ts';
export { verifyAudit } from './verify.ts';
