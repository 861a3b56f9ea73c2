export { addressText, isLoopback } from './addresses.ts';
export { parseConfig, readConfigFile } from './config.ts';
export { changedKeys, reloaded } from './reload.ts';
export { revocationExpiryMs, revocationWarnedMs } from './revocation-lists.ts';
export {
  type Config,
  type ConfigInput,
  ciphertextPrefixPattern,
  electionTimeoutMsMin,
  type ListenerConfig,
  type LogConfig,
  leaseMsMax,
} from './schema.ts';
export { sealConfig } from './seal-key.ts';
export { tlsContext } from './tls-context.ts';
