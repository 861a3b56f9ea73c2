import { exitCode } from '@transitd/process';
import { print, printError } from '../terminal/print.ts';

/**
 * Returns the exit code for container engines, some of which replace what is not healthy: 0 if the node is active or standby, also of a
 * secondary, 2 in another state, 1 if it does not answer.
 */
export async function checkHealth(address: string, send: typeof fetch): Promise<number> {
  try {
    const answer = await send(new URL('/v1/sys/health?standbyok=true&perfstandbyok=true&drsecondarycode=200', address), {
      signal: AbortSignal.timeout(5000),
    });
    print((await answer.text()).trimEnd());
    return answer.status === 200 ? exitCode.ok : exitCode.denied;
  } catch (error) {
    printError(`transitd: no answer from ${address}: ${error instanceof Error ? error.message : String(error)}`);
    return exitCode.start;
  }
}
