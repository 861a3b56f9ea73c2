import { cpus, totalmem } from 'node:os';

/** Returns the processor, cores, memory, system and version of Node that a report names. */
export function machine(): string {
  const [cpu] = cpus();
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  return `${cpu?.model ?? 'unknown CPU'}, ${cpus().length} cores, ${memory}, ${process.platform}, Node ${process.version}`;
}
