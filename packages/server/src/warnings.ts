/**
 * Passes on the warnings of this thread, of Node.js and of libraries. Node.js would print them as text, and the log has JSON lines only.
 * @param write - gets the name of the warning, such as `DeprecationWarning`, and its text
 */
export function onWarnings(write: (name: string, message: string) => void): void {
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => write(name, message));
}
