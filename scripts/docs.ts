// `npm run docs`: writes the pages of docs/ that are made from the program and from the navigation.
import { writePages } from './references/pages.ts';

await writePages();
