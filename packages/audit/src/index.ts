export { AuditKey, ensureAuditKey, initialAuditKey } from './audit-key.ts';
export { type AuditObserver, AuditTrail, type EntryType, type SinkConfig } from './audit-trail.ts';
export type { AuditedMount } from './entry.ts';
export { Exchange } from './exchange.ts';
export { verifyAudit } from './verify.ts';
