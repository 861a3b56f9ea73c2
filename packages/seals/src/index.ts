export { type CredentialFile, credentialFiles } from './credential-files.ts';
export { exchangeWith } from './http/exchange.ts';
export type { MonitoredSeal } from './monitored-seal.ts';
export { type OpenedSeal, openSeal, type SealRandom } from './open-seal.ts';
export { retryDelayMs } from './retry-delay.ts';
