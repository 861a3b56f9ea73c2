export {
  addressText,
  type Config,
  type ConfigInput,
  ciphertextPrefixPattern,
  electionTimeoutMsMin,
  isLoopback,
  type ListenerConfig,
  type LogConfig,
  leaseMsMax,
  parseConfig,
  readConfigFile,
} from './config.ts';
export { sealConfig } from './seal-key.ts';
export { tlsContext } from './tls-context.ts';
