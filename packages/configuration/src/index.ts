export { addressText, isLoopback } from './addresses.ts';
export {
  type Config,
  type ConfigInput,
  type ListenerConfig,
  type LogConfig,
  parseConfig,
  readConfigFile,
} from './config.ts';
export { ciphertextPrefixPattern, electionTimeoutMsMin, leaseMsMax } from './schema.ts';
export { sealConfig } from './seal-key.ts';
export { tlsContext } from './tls-context.ts';
