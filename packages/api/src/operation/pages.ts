import { dataReply, type Fields, int, type Reply, text } from '@transitd/http';
import { found } from './operation.ts';

/** Fields of every list of names. */
export const pageFields = {
  after: text('Return only names after this one, which need not exist'),
  limit: int('Maximum number of names; 0 for all', { min: 0 }),
} as const;

type Page = Fields<typeof pageFields>['values'];

/** Returns the names of a page. @param names - in ascending order */
export function pageOf(names: readonly string[], { after = '', limit = 0 }: Page): readonly string[] {
  const first = names.findIndex((name) => name > after);
  return first < 0 ? [] : names.slice(first, limit > 0 ? first + limit : undefined);
}

/** Returns the reply with the names of a page; no names are answered as a missing record. @throws RequestError `not_found` */
export function namesReply(names: readonly string[], asked: Page): Reply {
  const keys = pageOf(names, asked);
  return dataReply({ keys: found(keys.length === 0 ? undefined : keys) });
}
