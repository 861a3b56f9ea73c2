import type { Logger } from '@transitd/process';

/** A log that keeps its lines. */
export function keptLog(): {
  readonly log: Logger;
  readonly lines: { level: string; fields: Record<string, unknown>; text: string }[];
} {
  const lines: { level: string; fields: Record<string, unknown>; text: string }[] = [];
  const at =
    (level: string) =>
    (first: unknown, second?: string): void => {
      if (typeof first === 'string') lines.push({ level, fields: {}, text: first });
      else lines.push({ level, fields: { ...(first as object) }, text: second ?? '' });
    };
  const log = { info: at('info'), warn: at('warn'), error: at('error') } as unknown as Logger;
  return { log, lines };
}
