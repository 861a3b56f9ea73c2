import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Returns the first heading of a page in docs/. @param page - without `.md` */
export const titleOf = (page: string): string =>
  /^# (.+)$/m.exec(readFileSync(join(import.meta.dirname, '../../docs', `${page}.md`), 'utf8'))?.[1] ?? page;
