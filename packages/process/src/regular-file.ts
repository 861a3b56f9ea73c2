import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { StartError } from './exit.ts';

/** Maximum size of a file with secrets, in bytes. */
const secretBytesMax = 64 * 1024;

/**
 * Reads a file with secrets that another process may replace at any time. Refuses a file that users other than root and the one who runs
 * this process own or can write to: it would choose this node's credentials. They may be able to read it: secrets are mounted into
 * containers with modes such as 0440.
 * @param user - id of the user who runs this process; undefined on systems without user ids
 * @throws StartError; errors of the file system
 */
export const readSecretFile = (path: string, user = process.geteuid?.()): Buffer =>
  readRegularFile(path, secretBytesMax, ({ uid, mode }) => {
    if (user !== undefined && uid !== 0 && uid !== user)
      throw new StartError(
        `${path} is owned by user id ${uid}: only user id ${user}, which runs this process, and root may own it`,
      );
    if ((mode & 0o022) === 0) return;
    const present = (mode & 0o777).toString(8).padStart(4, '0');
    throw new StartError(`${path} has mode ${present}, so users other than its owner can write to it: run chmod go-w ${path}`);
  });

/** Maximum size of a certificate, a key or a list of authorities, in bytes. */
const pemBytesMax = 1024 * 1024;

/**
 * Reads a regular file that the configuration names, such as a certificate.
 * @param section - of the configuration, for errors
 * @throws StartError
 */
export function readNamedFile(section: string, path: string): Buffer {
  try {
    return readRegularFile(path, pemBytesMax);
  } catch (error) {
    if (error instanceof StartError) throw new StartError(`${section}: ${error.message}`);
    throw new StartError(`${section}: ${path} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`);
  }
}

/**
 * Reads a regular file. The check and the read use the same descriptor, so that nobody can exchange the file between them, and a FIFO is
 * refused instead of waiting for its writer.
 * @param check - throws if the file must not be read
 * @throws StartError; errors of the file system
 */
export function readRegularFile(path: string, bytesMax: number, check: (found: Stats) => void = () => undefined): Buffer {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = fstatSync(descriptor);
    if (!found.isFile()) throw new StartError(`${path} is not a regular file`);
    check(found);
    return contentOf(descriptor, path, bytesMax);
  } finally {
    closeSync(descriptor);
  }
}

/** The size in the metadata is not trusted: the file may grow meanwhile. */
function contentOf(descriptor: number, path: string, bytesMax: number): Buffer {
  const content = Buffer.alloc(bytesMax + 1);
  let length = 0;
  for (let read = -1; read !== 0 && length <= bytesMax; length += read)
    read = readSync(descriptor, content, length, content.length - length, null);
  if (length > bytesMax) throw new StartError(`${path} has more than ${bytesMax} bytes`);
  return content.subarray(0, length);
}
