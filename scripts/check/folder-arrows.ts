// Which folder of a package may import which. `npm run check:rules -- --arrows PACKAGE` prints the rows that the imports make.
import type { FolderArrows } from './folders.ts';

export const folderArrows: FolderArrows = {};
