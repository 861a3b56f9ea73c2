import type { WrapInfo } from '@transitd/access';
import { integer, type Reply, string, time } from '@transitd/http';
import { shown } from './shown.ts';

/** A wrapping token, as the envelope shows it. */
export const shownWrapInfo = shown<WrapInfo>({
  token: [string, ({ token }) => token],
  accessor: [string, ({ accessor }) => accessor],
  ttl: [integer, ({ ttlS }) => ttlS],
  creation_time: [time, ({ createdMs }) => new Date(createdMs).toISOString()],
  creation_path: [string, ({ path }) => path],
  // Present if the response shows a new token.
  'wrapped_accessor?': [string, ({ wrappedAccessor }) => wrappedAccessor || undefined],
});

/** Returns the reply that is sent instead of a wrapped response. The status of that response is sent when it is unwrapped. */
export const wrapReply = (info: WrapInfo): Reply => ({
  status: 200,
  envelope: { data: null, auth: null, wrapInfo: shownWrapInfo.json(info), warnings: [] },
});
