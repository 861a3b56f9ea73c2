import { memoryStore } from '../../src/store/memory-store.ts';
import { storeSuite } from './store.suite.ts';

storeSuite('memoryStore', async () => ({ replica: memoryStore(), close: async () => {} }));
