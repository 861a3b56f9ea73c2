const causesMax = 5;

/** Returns the messages of an error and its causes, for a log line. A cause whose message is already included is left out. */
export function reasonOf(error: unknown): string {
  let text = messageOf(error);
  let cause = error instanceof Error ? error.cause : undefined;
  for (let i = 0; cause !== undefined && i < causesMax; i++) {
    const message = messageOf(cause);
    if (!text.includes(message)) text = `${text}: ${message}`;
    cause = cause instanceof Error ? cause.cause : undefined;
  }
  return text;
}

/** Adds the code of a system error unless the message already contains it. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code !== 'string' || error.message.includes(code)) return error.message;
  return error.message === '' ? code : `${code}: ${error.message}`;
}
