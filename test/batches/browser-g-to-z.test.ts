import { defineBatch } from '../kit/batch.ts';

defineBatch('test/browser/[g-z]*.test.ts');
