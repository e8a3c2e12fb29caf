import { defineBatch } from '../kit/batch.ts';

defineBatch('test/browser/[a-f]*.test.ts');
