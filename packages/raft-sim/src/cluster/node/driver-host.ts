import type { Driver } from '@transitd/raft-core';
import type { MachineResult } from '../storage/command.ts';
import type { Host } from './host.ts';

/** The real driver behind the simulator's interface. */
export function driverHost(driver: Driver<MachineResult>): Host {
  return {
    start: () => driver.start(),
    propose: (data, done) => driver.propose(data, done),
    proposeConf: (change, done) => driver.proposeConf(change, done),
    readIndex: (done) => driver.readIndex(done),
    leaseRead: () => driver.leaseRead(),
    leaseEndMs: () => driver.leaseEndMs(),
    confirm: (to, index, done) => driver.confirm(to, index, done),
    transfer: (to) => driver.transfer(to, () => undefined),
    setFitness: (fitness) => driver.setFitness(fitness),
    consensus: () => driver.consensus(),
    matchOf: (id) => driver.peers().find((peer) => peer.id === id)?.match,
  };
}
