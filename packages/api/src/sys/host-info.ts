import { arch, cpus, freemem, hostname, loadavg, platform, release, totalmem, uptime } from 'node:os';
import { dataReply, integer, list, map, number, object, string, time } from '@transitd/http';
import type { DiskSpaceView } from '@transitd/node';
import * as answers from '../operation/answers.ts';
import { guarded, type Route } from '../operation/operation.ts';

/** Reads information about this host. */
const hostInfo = guarded({
  name: 'host-info',
  about: 'Read CPU, memory and disk information of this host',
  answers: answers.data(
    object({
      cpu: list(object({ cpu: integer, model: string, mhz: number, times: map(number) })),
      disk: list(object({ path: string, total: integer, free: integer, available: integer })),
      host: object({ hostname: string, os: string, kernel: string, arch: string, uptime: integer, load: list(number) }),
      memory: object({ total: integer, free: integer, rss: integer }),
      timestamp: time,
    }),
  ),
  where: 'here',
  capability: 'read',
  run: async ({ node }) => {
    const space = await node.disk.space();
    const data = {
      cpu: cpus().map(({ model, speed, times }, at) => ({ cpu: at, model, mhz: speed, times })),
      // Empty while the disk hangs.
      disk: space ? [diskRow(node.config.data_dir, space)] : [],
      host: {
        hostname: hostname(),
        os: platform(),
        kernel: release(),
        arch: arch(),
        uptime: Math.floor(uptime()),
        load: loadavg(),
      },
      memory: { total: totalmem(), free: freemem(), rss: process.memoryUsage.rss() },
      timestamp: new Date().toISOString(),
    };
    return dataReply(data);
  },
});

const diskRow = (path: string, { totalBytes, freeBytes, availableBytes }: DiskSpaceView) => ({
  path,
  total: totalBytes,
  free: freeBytes,
  available: availableBytes,
});

export const hostRoutes: readonly Route[] = [{ path: 'sys/host-info', operations: { GET: hostInfo } }];
