const causesMax = 5;

/** The message of an error and of its causes, for a log line; a cause that an earlier message repeats is left out. */
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

/** With the code of the system's error, where the message does not name it. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code !== 'string' || error.message.includes(code)) return error.message;
  return error.message === '' ? code : `${code}: ${error.message}`;
}
