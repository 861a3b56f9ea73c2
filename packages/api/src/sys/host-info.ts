import { statfs } from 'node:fs/promises';
import { arch, cpus, freemem, hostname, loadavg, platform, release, totalmem, uptime } from 'node:os';
import { dataReply, integer, list, map, number, object, string, time } from '@transitd/http';
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
    const disk = await statfs(node.config.data_dir);
    const data = {
      cpu: cpus().map(({ model, speed, times }, at) => ({ cpu: at, model, mhz: speed, times })),
      disk: [
        {
          path: node.config.data_dir,
          total: disk.blocks * disk.bsize,
          free: disk.bfree * disk.bsize,
          available: disk.bavail * disk.bsize,
        },
      ],
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
    return dataReply(JSON.stringify(data));
  },
});

export const hostRoutes: readonly Route[] = [{ path: 'sys/host-info', operations: { GET: hostInfo } }];
