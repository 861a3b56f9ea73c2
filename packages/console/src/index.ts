export { builtFiles } from './built.ts';
export type { ConsoleFile } from './console-file.ts';
export { securityHeaders } from './security-headers.ts';
