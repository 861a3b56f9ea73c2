// Opens the node in the given directory, prints a line, and runs until it is killed.
import { SegmentLog } from '../../src/log/segment-log.ts';

await SegmentLog.open(process.argv[2] ?? '', { growBytes: 4096 });
process.stdout.write('open\n');
setInterval(() => undefined, 60_000);
